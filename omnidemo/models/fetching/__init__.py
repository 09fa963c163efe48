"""Files of models, brought onto this machine: from a place here, the Hub, or the package index."""
