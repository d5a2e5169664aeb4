"""What a registry's owners want of the bot: read, checked, kept below the host's ceilings."""
