"""What is known: outcomes, evidence and verdicts, limits of the hardware."""
