#!/usr/bin/perl
# Runs programs for a process that is too large to fork cheaply: the kernel copies a parent's page tables for every fork,
# and this one has next to none. lib/exec-helper.ts starts it and speaks to it. Built-in functions only, no modules.
#
# In:   "run <id> <most bytes kept> <arguments> <variables> <bytes> <stdin bytes>\n" fields stdin
#           fields, each ended by NUL: directory ('' for this one), program and arguments, NAME=value of its environment
#       "kill <id> <signal>\n"      the program alone
#       "drop <id>\n"               SIGKILL, and nobody waits for what it still says
#       "mount <id> <number of mount(2) on this machine> <bytes>\n" fields    source, target, type, data; no flags
# Out:  "exit <id> <wait status> <stdout bytes> <stderr bytes>\n" stdout stderr     when it has ended and closed both
#       "fail <id> <errno>\n"       it could not be started
#
# It ends when its standard input does. What it runs at that moment is left to run on.
use strict;

# Linux's own numbers, so that no module is loaded for them: F_SETFL 4, O_NONBLOCK 2048 (not on MIPS), WNOHANG 1,
# EINTR 4, EAGAIN 11.
my @ignored = qw(INT TERM HUP PIPE);
$SIG{$_} = 'IGNORE' for @ignored;
$SIG{CHLD} = sub { };    # Only so that an end wakes select at once.
binmode STDIN;
binmode STDOUT;
nonblocking(\*STDIN);

my (%jobs, $in);
$in = '';

sub nonblocking { fcntl $_[0], 4, 2048 }

sub say_all {
    my ($text) = @_;
    while (length $text) {
        my $written = syswrite STDOUT, $text;
        if (!defined $written) {
            next if $! == 4;
            exit 0;    # Nobody listens any more.
        }
        substr($text, 0, $written) = '';
    }
}

sub start {
    my ($id, $limit, $fields, $arguments, $stdin) = @_;
    my ($directory, @rest) = split /\0/, $fields, -1;
    pop @rest;         # Behind the last NUL.
    my @command = splice @rest, 0, $arguments;
    my (@in, @out, @err, @failed);
    for my $pipe (\@in, \@out, \@err, \@failed) {
        pipe($pipe->[0], $pipe->[1]) or return say_all("fail $id " . ($! + 0) . "\n");
    }
    my $pid = fork;
    return say_all("fail $id " . ($! + 0) . "\n") if !defined $pid;
    if ($pid == 0) {
        # Ignored signals would stay ignored in the program.
        $SIG{$_} = 'DEFAULT' for @ignored, 'CHLD';
        %ENV = map { split /=/, $_, 2 } @rest;
        # Onto 0, 1 and 2; every other descriptor is closed by exec.
        if (open(STDIN, '<&', $in[0]) && open(STDOUT, '>&', $out[1]) && open(STDERR, '>&', $err[1])
            && ($directory eq '' || chdir $directory)) {
            no warnings;
            exec { $command[0] } @command;
        }
        syswrite $failed[1], $! + 0;
        kill 'KILL', $$;
    }
    close $_ for $in[0], $out[1], $err[1], $failed[1];
    # Ends when the program is executed, which is at once.
    my $errno = '';
    while (!defined sysread($failed[0], $errno, 16)) { last if $! != 4 }
    if ($errno ne '') {
        while (waitpid($pid, 0) < 0 && $! == 4) { }
        return say_all("fail $id $errno\n");
    }
    nonblocking($_) for $in[1], $out[0], $err[0];
    my $job = { pid => $pid, limit => $limit, stdin => $stdin, in => $in[1], pipes => [$out[0], $err[0]], said => ['', ''] };
    close delete $job->{in} if $stdin eq '';
    $jobs{$id} = $job;
}

sub take_requests {
    while ($in =~ /\A([^\n]*)\n/) {
        my ($line, $head) = ($1, $+[0]);
        my ($what, $id, @numbers) = split / /, $line;
        if ($what eq 'run') {
            my ($limit, $arguments, $variables, $length, $stdin) = @numbers;
            return if length($in) < $head + $length + $stdin;
            start($id, $limit, substr($in, $head, $length), $arguments, substr($in, $head + $length, $stdin));
            $head += $length + $stdin;
        } elsif ($what eq 'mount') {
            my ($number, $length) = @numbers;
            return if length($in) < $head + $length;
            my ($source, $target, $type, $data) = split /\0/, substr($in, $head, $length), -1;
            my $done = syscall($number, $source, $target, $type, 0, $data) == 0;
            say_all($done ? "exit $id 0 0 0\n" : "fail $id " . ($! + 0) . "\n");
            $head += $length;
        } elsif (my $job = $jobs{$id}) {
            kill $what eq 'drop' ? 9 : $numbers[0], $job->{pid} if !defined $job->{status};
            @$job{qw(pipes in)} = ([], undef) if $what eq 'drop';
        }
        substr($in, 0, $head) = '';
    }
}

sub feed {
    my ($job) = @_;
    my $written = syswrite $job->{in}, $job->{stdin};
    return if !defined $written && ($! == 4 || $! == 11);
    substr($job->{stdin}, 0, $written) = '' if defined $written;
    # A program may exit without reading its input; that is its affair.
    close delete $job->{in} if !defined $written || $job->{stdin} eq '';
}

sub listen_to {
    my ($job, $index) = @_;
    my $read = sysread $job->{pipes}[$index], my $chunk, 65536;
    return if !defined $read && ($! == 4 || $! == 11);
    if (!$read) {
        close $job->{pipes}[$index];
        undef $job->{pipes}[$index];
        return;
    }
    my $room = $job->{limit} - length $job->{said}[$index];
    $job->{said}[$index] .= $room < $read ? substr($chunk, 0, $room) : $chunk if $room > 0;
}

# A program that has closed its outputs is as good as gone; until it is, it is asked after, in growing steps.
my $pause;
sub finish {
    my $waiting = 0;
    for my $id (keys %jobs) {
        my $job = $jobs{$id};
        next if grep { defined } @{$job->{pipes}};
        if (waitpid($job->{pid}, 1) != $job->{pid}) {
            $waiting = 1;
            next;
        }
        my $status = $?;
        my ($out, $err) = @{$job->{said}};
        delete $jobs{$id};
        say_all(sprintf("exit %s %d %d %d\n", $id, $status, length $out, length $err) . $out . $err);
        undef $pause;
    }
    $pause = $waiting ? (defined $pause && $pause < 0.05 ? $pause * 2 : defined $pause ? $pause : 0.0005) : undef;
}

while (1) {
    finish();
    my ($readable, $writable) = ('', '');
    vec($readable, 0, 1) = 1;
    for my $job (values %jobs) {
        vec($writable, fileno $job->{in}, 1) = 1 if $job->{in};
        vec($readable, fileno $_, 1) = 1 for grep { defined } @{$job->{pipes}};
    }
    next if select($readable, $writable, undef, $pause) < 0;
    for my $job (values %jobs) {
        feed($job) if $job->{in} && vec($writable, fileno $job->{in}, 1);
        for my $index (0, 1) {
            my $pipe = $job->{pipes}[$index];
            listen_to($job, $index) if defined $pipe && vec($readable, fileno $pipe, 1);
        }
    }
    next if !vec($readable, 0, 1);
    my $read = sysread STDIN, $in, 65536, length $in;
    exit 0 if defined $read && $read == 0;
    exit 0 if !defined $read && $! != 4 && $! != 11;
    take_requests();
}
