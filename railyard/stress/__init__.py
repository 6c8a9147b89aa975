"""The multipath stress corpus: scenarios in which paths fail, and what a transport must still do."""
