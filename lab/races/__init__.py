"""How fast, against what people use and against what the machine allows."""
