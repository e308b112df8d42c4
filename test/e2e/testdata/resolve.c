/* resolve NAME: prints the IPv4 addresses of NAME as this libc's getaddrinfo finds them. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list, *a;
	char text[INET_ADDRSTRLEN];
	int err;
	if (argc != 2) return 2;
	if ((err = getaddrinfo(argv[1], 0, &hints, &list)) != 0) {
		fprintf(stderr, "%s: %s\n", argv[1], gai_strerror(err));
		return 1;
	}
	for (a = list; a; a = a->ai_next)
		puts(inet_ntop(AF_INET, &((struct sockaddr_in *)a->ai_addr)->sin_addr, text, sizeof text));
	return 0;
}
