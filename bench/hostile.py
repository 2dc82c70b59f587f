"""Clients of a Redis server that behave badly, for measuring what others notice of them.

    python3 bench/hostile.py KIND PORT SECONDS

KIND is one of:

    idle   9,000 connections that send nothing
    half   500 connections, each with half a command
    bulk   20 connections that announce a string of 512 MiB and send as fast as they can
    slow   200 connections that request 200 MB each and read nothing
    fill   the same, 50 of them, and 50 new ones in their place every 0.2 seconds: the system's buffers for them are
           being filled all the time, which with `slow` is over before `ready`

It prints `ready` once they are connected, or before it begins to fill, and holds them for the seconds. Meanwhile run,
for example:

    redis-benchmark -p PORT -t set,get -n 100000 -c 10 -r 100000 -d 64 --csv
"""

import resource
import socket
import sys
import threading
import time


def connect(port):
    return socket.create_connection(("127.0.0.1", port))


def command(*parts):
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def idle(port):
    return [connect(port) for _ in range(9000)]


def half(port):
    return [sent(port, b"*3\r\n$3\r\nSET\r\n$3\r\noak\r\n$10\r\nQu") for _ in range(500)]


def bulk(port):
    clients = [sent(port, b"*3\r\n$3\r\nSET\r\n$3\r\noak\r\n$536870912\r\n") for _ in range(20)]
    for client in clients:
        threading.Thread(target=push, args=(client,), daemon=True).start()
    return clients


def slow(port):
    set_big(port)
    return readers(port, 200)


def fill(port, seconds):
    set_big(port)
    print("ready", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        clients = readers(port, 50)
        time.sleep(0.2)
        for client in clients:
            client.close()


def set_big(port):
    with connect(port) as client:
        client.sendall(command(b"SET", b"big", b"y" * 100_000))
        client.recv(100)


def readers(port, count):
    return [sent(port, command(b"GET", b"big") * 2000) for _ in range(count)]


def sent(port, request):
    """A connection that sent a request, or the part that the system took at once."""
    client = connect(port)
    client.setblocking(False)
    try:
        client.send(request)
    except BlockingIOError:
        pass
    return client


def push(client):
    client.setblocking(True)
    try:
        while True:
            client.send(b"x" * 65536)
    except OSError:
        pass  # the server has had enough


KINDS = {"idle": idle, "half": half, "bulk": bulk, "slow": slow}


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in [*KINDS, "fill"]:
        sys.exit(__doc__)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))
    port, seconds = int(sys.argv[2]), float(sys.argv[3])
    if sys.argv[1] == "fill":
        return fill(port, seconds)
    clients = KINDS[sys.argv[1]](port)
    print("ready", flush=True)
    time.sleep(seconds)
    del clients


main()
