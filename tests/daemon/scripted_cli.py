"""The command line with scripted jobs, for tests that send it signals."""

import sys
from unittest.mock import patch

from daemon.cli import bot as cli_bot
from daemon.cli import job as cli_job
from daemon.cli import main as cli
from tests.daemon.origins import SCRIPTED

if __name__ == "__main__":
    with (  # the process boundary
        patch.object(cli_bot, "Jobs", return_value=SCRIPTED),
        patch.object(cli_job, "Jobs", return_value=SCRIPTED),
    ):
        sys.exit(cli.main())
