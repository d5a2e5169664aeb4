"""The command line with scripted jobs, for tests that send it signals."""

import sys
from unittest.mock import patch

from daemon import cli, cli_bot, cli_job
from tests.daemon.origins import SCRIPTED

if __name__ == "__main__":
    with (  # the process boundary
        patch.object(cli_bot, "Jobs", return_value=SCRIPTED),
        patch.object(cli_job, "Jobs", return_value=SCRIPTED),
    ):
        sys.exit(cli.main())
