"""What is measured inside a kernel, one file a source; never in a timed run."""
