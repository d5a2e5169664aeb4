"""More than one device, more than one machine: what there is, who has it, who waits."""
