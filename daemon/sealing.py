"""Signs what a job wrote, here and not there: no key ever reaches a device's host."""

from pathlib import Path

from optimizer.kernel_page import sign_kernel


def seal(folder: Path | None, key: Path | None) -> None:
    """Sign a kernel's folder, where there is one and a key to sign with.

    Raises:
        KeyFileError: The key can't be read.
        KernelFolderError: The folder is damaged.
    """
    if folder is not None and key is not None:
        sign_kernel(folder, key)
