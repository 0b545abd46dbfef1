#!/usr/bin/perl
# nodelet-cni: a CNI plugin that runs nothing itself. It passes its environment and standard input to the nodelet
# agent's socket and prints what the agent answers. Built-in functions only, no modules: it starts in about 3 ms.
#
# Request:  "nodelet-cni 1 <env bytes> <stdin bytes>\n" env stdin      env is "CNI_X=value" entries, each ending in NUL
# Answer:   "<exit code> <stdout bytes>\n" stdout
#
# Anything but a whole answer is CNI error 11 (try again later): the agent is not there, or went away half-way.
use strict;

my $socket_path = '@SOCKET_PATH@';
my $command = $ENV{CNI_COMMAND} // '';
$SIG{PIPE} = 'IGNORE';
binmode $_ for *STDIN, *STDOUT;

if ($command eq 'VERSION') {
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

my $stdin = do { local $/; <STDIN> } // '';
my $env = join '', map { "$_=$ENV{$_}\0" } grep { /^CNI_/ } sort keys %ENV;

# Linux's own numbers, so that no module is loaded for them: AF_UNIX 1, SOCK_STREAM 1 (not on MIPS), EINTR 4.
socket(my $agent, 1, 1, 0) or try_again_later("socket: $!");
connect($agent, pack('S a108', 1, $socket_path)) or try_again_later("connect: $!");
binmode $agent;

my $request = sprintf("nodelet-cni 1 %d %d\n", length $env, length $stdin) . $env . $stdin;
while (length $request) {
    my $written = syswrite $agent, $request;
    if (!defined $written) {
        next if $! == 4;
        last;    # The agent may have answered already, without reading the rest.
    }
    substr($request, 0, $written) = '';
}

my $answer = '';
while (1) {
    my $read = sysread $agent, $answer, 65536, length $answer;
    if (!defined $read) {
        next if $! == 4;
        try_again_later("read: $!");
    }
    last if $read == 0;
}

$answer =~ /\A(\d{1,3}) (\d+)\n/ or try_again_later('the connection was closed before an answer came');
my ($code, $length, $start) = ($1, $2, $+[0]);
length($answer) - $start == $length or try_again_later('the connection was closed in the middle of the answer');
print substr($answer, $start);
exit $code;
