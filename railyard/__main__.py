from railyard.cli.main import main

main()
