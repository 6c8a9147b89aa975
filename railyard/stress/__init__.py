"""The multipath stress corpus: scenarios in which paths fail, with expectations of a transport."""
