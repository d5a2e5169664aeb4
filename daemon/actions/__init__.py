"""Jobs on the code host's own runners: sent, waited for, believed as far as they are proven."""
