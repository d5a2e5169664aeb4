"""When, where and to whom: the daemon, its command line and the code host."""
