"""Whether a checkout would start on a Space of the Hugging Face Hub."""
