"""What an experiment is: the fields of its YAML file, and the settings of the schemes."""
