"""Signs what a job wrote, here and not there: no key ever reaches a device's host."""

from pathlib import Path

from optimizer.kernel_page import sign_kernel


def seal(folder: Path | None, key: Path | None) -> str:
    """Sign a kernel's folder, and return the public key; empty without a folder or a key.

    Raises:
        KeyFileError: The key can't be read.
        KernelFolderError: The folder is damaged.
    """
    return sign_kernel(folder, key) if folder is not None and key is not None else ""
