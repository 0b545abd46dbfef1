#!/usr/bin/perl
# nodelet-cni: a CNI plugin that runs nothing itself. It passes its environment and standard input to the nodelet
# agent's socket and prints what the agent answers. Every pod waits for its start, some 2 ms: built-in functions only,
# no module (not even strict, which the tests check it by), no signal handler, no pattern that is not needed.
#
# Request:  "nodelet-cni 1 <env bytes> <stdin bytes>\n" env stdin      env is "CNI_X=value" entries, each ending in NUL
# Answer:   "<exit code> <stdout bytes>\n" stdout
#
# Anything but a whole answer is CNI error 11 (try again later): the agent is not there, or went away half-way.

my $socket_path = '@SOCKET_PATH@';

if (($ENV{CNI_COMMAND} // '') eq 'VERSION') {
    print '{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}';
    exit 0;
}

sub try_again_later {
    my ($details) = @_;
    $details =~ s/[^ -~]|["\\]/?/g;
    print qq({"cniVersion":"1.0.0","code":11,"msg":"the nodelet agent does not answer on $socket_path; )
        . qq(is it running?","details":"$details"});
    exit 1;
}

sub read_all {
    my ($from) = @_;
    my $text = '';
    while (1) {
        my $read = sysread $from, $text, 65536, length $text;
        return $text if defined $read && $read == 0;
        try_again_later("read: $!") if !defined $read && $! != 4;
    }
}

# Linux's own numbers, so that no module is loaded for them: AF_UNIX 1, SOCK_STREAM 1 (not on MIPS), EINTR 4,
# MSG_NOSIGNAL 16384.
socket(my $agent, 1, 1, 0) or try_again_later("socket: $!");
connect($agent, pack('S a108', 1, $socket_path)) or try_again_later("connect: $!");

my $stdin = read_all(\*STDIN);
my $env = join '', map { substr($_, 0, 4) eq 'CNI_' ? "$_=$ENV{$_}\0" : () } keys %ENV;
my $request = 'nodelet-cni 1 ' . length($env) . ' ' . length($stdin) . "\n$env$stdin";
while ($request ne '') {
    my $written = send $agent, $request, 16384;
    if (!defined $written) {
        next if $! == 4;
        last;    # The agent may have answered already, without reading the rest.
    }
    substr($request, 0, $written) = '';
}

my $answer = read_all($agent);
my $start = index($answer, "\n") + 1;
my ($code, $length) = split ' ', substr $answer, 0, $start;
try_again_later('the connection was closed before an answer came') if !defined $length;
try_again_later('the connection was closed in the middle of the answer') if length($answer) - $start != $length;
print substr $answer, $start;
exit $code;
