from hdlog.cli import main

main()
