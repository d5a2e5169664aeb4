"""The command line with scripted jobs, for tests that send it signals."""

import sys
from unittest.mock import patch

from daemon import cli, cli_bot
from tests.daemon.origins import SCRIPTED

if __name__ == "__main__":
    with patch.object(cli_bot, "Jobs", return_value=SCRIPTED):  # the process boundary
        sys.exit(cli.main())
