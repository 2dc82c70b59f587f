"""redis-py by its defaults, with a server at the port of the first argument. `cargo xtask test redis` runs it."""

import sys

import redis


def check(client: redis.Redis) -> None:
    client.flushall()
    assert client.ping()
    assert client.set("tree", "oak", ex=100)
    assert client.get("tree") == b"oak"
    assert 90 < client.ttl("tree") <= 100
    assert client.incrby("count", 7) == 7
    assert client.hset("hash", mapping={"a": "1", "b": "2"}) == 2
    assert client.hgetall("hash") == {b"a": b"1", b"b": b"2"}
    assert client.sadd("set", "x", "y") == 2
    assert client.smembers("set") == {b"x", b"y"}
    assert client.zadd("zset", {"low": 1, "high": 2.5}) == 2
    scored = client.zrange("zset", 0, -1, withscores=True)
    assert [tuple(pair) for pair in scored] == [(b"low", 1.0), (b"high", 2.5)]
    assert client.rpush("list", "a", "b", "c") == 3
    assert client.lrange("list", 0, -1) == [b"a", b"b", b"c"]

    with client.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set(f"key:{number}", number)
        assert all(pipe.execute())
    assert len(set(client.scan_iter("key:*", count=100))) == 1000
    assert client.dbsize() == 1006

    def add(pipe: redis.client.Pipeline) -> None:
        count = int(pipe.get("count"))
        pipe.multi()
        pipe.set("count", count + 1)

    client.transaction(add, "count")
    assert client.get("count") == b"8"
    with client.pipeline() as pipe:
        pipe.watch("count")
        client.incr("count")
        pipe.multi()
        pipe.set("count", 0)
        try:
            pipe.execute()
            raise AssertionError("a watched key had changed")
        except redis.WatchError:
            pass
    found = client.execute_command("FORREST.RANGE", "[key:1", "(key:101", "KEYS")
    assert found == [b"key:1", b"key:10", b"key:100"]
    assert client.info()["role"] == "master"
    assert client.config_get("appendfsync") == {"appendfsync": "everysec"}
    try:
        client.xadd("stream", {"a": "b"})
        raise AssertionError("there are no streams")
    except redis.ResponseError as error:
        assert "there are no streams" in str(error)


if __name__ == "__main__":
    for protocol in (None, 2, 3):
        options = {} if protocol is None else {"protocol": protocol}
        check(redis.Redis(port=int(sys.argv[1]), **options))
    print("redis-py", redis.__version__, "passed")
