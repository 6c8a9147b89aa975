from railyard.cli.start import main

main()
