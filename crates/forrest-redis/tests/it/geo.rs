//! Places. The replies are those of Redis 7.0.

use crate::harness::everywhere;

/// An area around a pole has all longitudes. Unsorted, what is near the middle comes first.
#[test]
fn areas_cross_poles_and_the_ends_of_longitudes() {
    everywhere(
        "geoadd k 45 65 a -135 85.05 b 180 -85.05112878 c => :3
        geosearch k frommember a byradius 5009431 m => [\"a\", \"b\"]
        geosearch k fromlonlat 180 0 byradius 30000 km count 3 => [\"c\", \"b\", \"a\"]
        geosearch k fromlonlat 180 -85 bybox 20 20 km => [\"c\"]
        geosearch k fromlonlat -180 -85 bybox 20 20 km => [\"c\"]",
    );
}

#[test]
fn places_are_added_and_found() {
    everywhere(
        "geoadd k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        geoadd k nx ch 1 1 Palermo => :0
        geoadd k xx 1 1 none => :0
        geoadd k ch 13.361389 38.115556 Palermo -180 -85.05112878 edge => :1
        zrange k 0 -1 withscores => [\"edge\", \"0\", \"Palermo\", \"3479099956230698\", \"Catania\", \
         \"3479447370796909\"]
        geopos k edge Palermo none => [[\"-179.99999731779098511\", \"-85.05112751263942528\"], \
         [\"13.36138933897018433\", \"38.11555639549629859\"], (nil)]
        geohash k edge Palermo none => [\"00bh0hbj200\", \"sqc8b49rny0\", (nil)]
        geohash k => []
        geopos none a => [(nil)]
        geodist k Palermo Catania => \"166274.1516\"
        geodist k Palermo Catania KM => \"166.2742\"
        geodist k Palermo none => (nil)
        geodist none Palermo Catania => (nil)
        geodist k Palermo Catania xx => (error) ERR unsupported unit provided. please use M, KM, FT, MI
        geodist k Palermo Catania km x => (error) ERR syntax error
        geoadd k 181 0 x => (error) ERR invalid longitude,latitude pair 181.000000,0.000000
        geoadd k x 0 x => (error) ERR value is not a valid float
        geoadd k nx xx 1 1 a => (error) ERR syntax error
        geoadd k foo 1 1 a => (error) ERR syntax error
        geosearch k fromlonlat 15 37 byradius 200 km asc => [\"Catania\", \"Palermo\"]
        geosearch k fromlonlat 15 37 byradius 200 km desc withhash withcoord withdist => [[\"Palermo\", \
         \"190.4424\", :3479099956230698, [\"13.36138933897018433\", \"38.11555639549629859\"]], \
         [\"Catania\", \"56.4413\", :3479447370796909, [\"15.08726745843887329\", \"37.50266842333162032\"]]]
        geosearch k fromlonlat 15 37 bybox 400 400 km count 1 => [\"Catania\"]
        geosearch k frommember Palermo byradius 103.32 mi asc withdist => [[\"Palermo\", \"0.0000\"], \
         [\"Catania\", \"103.3182\"]]
        geosearch k frommember edge byradius 0 m any count 1 => [\"edge\"]
        geosearch k fromlonlat 179.9 -85 byradius 20000 m => [\"edge\"]
        geosearch k fromlonlat 15 37 byradius 1 km => []
        geosearch k fromlonlat 15 37 byradius -1 km => (error) ERR radius cannot be negative
        geosearch k fromlonlat 15 37 byradius x km => (error) ERR need numeric radius
        geosearch k fromlonlat 15 37 byradius 1 xx => (error) ERR unsupported unit provided. please use M, \
         KM, FT, MI
        geosearch k fromlonlat 15 37 bybox -1 1 km => (error) ERR height or width cannot be negative
        geosearch k fromlonlat 15 37 bybox x 1 km => (error) ERR need numeric width
        geosearch k fromlonlat 15 37 bybox 1 x km => (error) ERR need numeric height
        geosearch k fromlonlat 200 0 byradius 1 km => (error) ERR invalid longitude,latitude pair \
         200.000000,0.000000
        geosearch k frommember none byradius 1 km => (error) ERR could not decode requested zset member
        geosearch k frommember Palermo fromlonlat 1 1 byradius 1 km => (error) ERR syntax error
        geosearch k byradius 1 km asc count 1 => (error) ERR exactly one of FROMMEMBER or FROMLONLAT can be \
         specified for geosearch
        geosearch k frommember Palermo asc desc count 1 => (error) ERR exactly one of BYRADIUS and BYBOX \
         can be specified for geosearch
        geosearch k frommember Palermo byradius 1 km count 0 => (error) ERR COUNT must be > 0
        geosearch k frommember Palermo byradius 1 km any => (error) ERR the ANY argument requires COUNT \
         argument
        geosearch k fromlonlat 15 37 byradius 200 km store d => (error) ERR syntax error
        geosearch none frommember Palermo byradius 1 km => []
        geosearch none frommember Palermo byradius 1 km count 0 => (error) ERR COUNT must be > 0
        geosearchstore d k frommember Palermo byradius 200 km => :2
        zrange d 0 -1 withscores => [\"Palermo\", \"3479099956230698\", \"Catania\", \"3479447370796909\"]
        geosearchstore d k frommember Palermo byradius 200 km storedist => :2
        zscore d Palermo => \"0\"
        geosearchstore d k frommember Palermo byradius 200 km withdist => (error) ERR GEOSEARCHSTORE is not \
         compatible with WITHDIST, WITHHASH and WITHCOORD options
        geosearchstore d none frommember Palermo byradius 200 km => :0
        exists d => :0
        georadius k 15 37 200 km asc count 1 withcoord => [[\"Catania\", [\"15.08726745843887329\", \
         \"37.50266842333162032\"]]]
        georadius k 15 37 200 km store d storedist e => :2
        exists d e => :1
        georadius k 15 37 200 km store d withdist => (error) ERR STORE option in GEORADIUS is not \
         compatible with WITHDIST, WITHHASH and WITHCOORD options
        georadius_ro k 15 37 200 km store d => (error) ERR syntax error
        georadius k 15 37 200 km store => (error) ERR syntax error
        georadius k 15 x 1 km => (error) ERR value is not a valid float
        georadiusbymember k Palermo 200 km withdist => [[\"Palermo\", \"0.0000\"], [\"Catania\", \
         \"166.2742\"]]
        georadiusbymember_ro k Palermo 200 km desc => [\"Catania\", \"Palermo\"]
        georadiusbymember k none 1 km => (error) ERR could not decode requested zset member
        georadiusbymember none none 1 km => []
        set s x => OK
        geosearch s frommember Palermo byradius 200 km => (error) WRONGTYPE Operation against a key holding \
         the wrong kind of value
        geopos s a => (error) WRONGTYPE Operation against a key holding the wrong kind of value
        geoadd s 1 1 a => (error) WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}
