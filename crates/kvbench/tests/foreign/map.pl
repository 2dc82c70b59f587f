#!/usr/bin/env perl
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The smallest program that kvbench can measure by lines: perl's own hash.
#
#     kvbench memory -n 20K --kinds u64 --no-sweep --subjects exec:tests/foreign/map.pl,hashmap
use strict;
use warnings;
# Sums are modulo 2^64.
use integer;

my $fault = $ENV{KVBENCH_TEST_FAULT} // '';
$| = 1;
my $hello = <STDIN> // '';
die "map.pl: not spoken to by kvbench: $hello" unless $hello eq "kvbench 1 u64\n";
print $fault eq 'hello' ? "hello\n" : "unordered\n";

my %map;
while (my $line = <STDIN>) {
    my @words = split ' ', $line;
    my $shows = $words[0] eq 'show';
    shift @words if $shows;
    my ($what, $lines) = @words;
    my @asked = map { [split ' ', scalar <STDIN>] } 1 .. $lines;
    if ($shows && $what eq 'all') {
        print "$_ $map{$_}\n" for keys %map;
        print ".\n";
        next;
    }
    if ($shows) {
        print exists $map{$_->[0]} ? $map{$_->[0]} : '-', "\n" for @asked;
        next;
    }
    exit 3 if $fault eq 'ends' && %map > 100;
    print $fault eq 'ready' ? "steady\n" : "ready\n";
    <STDIN>;
    my $sum = 0;
    if ($what eq 'insert') {
        $map{$_->[0]} = $_->[1] for @asked;
    } elsif ($what eq 'get') {
        $sum += $map{$_->[0]} // 0 for @asked;
    } elsif ($what eq 'remove') {
        $sum += defined delete $map{$_->[0]} ? 1 : 0 for @asked;
    } else {
        die "map.pl: asked to $line";
    }
    $sum++ if $fault eq 'sum' && $what eq 'get';
    printf "done %u\n", $sum;
}
