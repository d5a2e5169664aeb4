"""The command line: words in, one module for what each command does, tables and JSON out."""
