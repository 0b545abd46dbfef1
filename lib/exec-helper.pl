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

# A process that waits for its order, forked before there is one: a fork takes longer than all else that a start does.
my $spare;

sub prepare {
    my %new;
    for my $name (qw(in out err failed order)) {
        pipe($new{$name}[0], $new{$name}[1]) or return;
    }
    my $pid = fork;
    return if !defined $pid;
    if ($pid == 0) {
        close $new{order}[1];
        # Other programs' pipes must end when the helper closes them.
        close $_ for grep { defined } map { ($_->{in}, @{$_->{pipes}}) } values %jobs;
        become(\%new);
    }
    close $_ for $new{in}[0], $new{out}[1], $new{err}[1], $new{failed}[1], $new{order}[0];
    $spare = { pid => $pid, in => $new{in}[1], out => $new{out}[0], err => $new{err}[0], failed => $new{failed}[0],
        order => $new{order}[1] };
}

# In the child: takes its order and becomes what it says. No order, and it ends with the helper.
sub become {
    my ($mine) = @_;
    my $order = '';
    while (1) {
        my $read = sysread $mine->{order}[0], $order, 65536, length $order;
        last if defined $read ? $read == 0 : $! != 4;
    }
    my ($arguments, $directory, @rest) = split /\0/, $order, -1;
    if (defined $directory) {
        pop @rest;         # Behind the last NUL.
        my @command = splice @rest, 0, $arguments;
        # Ignored signals would stay ignored in the program.
        $SIG{$_} = 'DEFAULT' for @ignored, 'CHLD';
        %ENV = map { split /=/, $_, 2 } @rest;
        # Onto 0, 1 and 2; every other descriptor is closed by exec.
        if (open(STDIN, '<&', $mine->{in}[0]) && open(STDOUT, '>&', $mine->{out}[1])
            && open(STDERR, '>&', $mine->{err}[1]) && ($directory eq '' || chdir $directory)) {
            no warnings;
            exec { $command[0] } @command;
        }
        syswrite $mine->{failed}[1], $! + 0;
    }
    kill 'KILL', $$;
}

sub start {
    my ($id, $limit, $fields, $arguments, $stdin) = @_;
    prepare() if !defined $spare;
    return say_all("fail $id " . ($! + 0) . "\n") if !defined $spare;
    my ($child, $pid) = ($spare, $spare->{pid});
    undef $spare;
    my $order = "$arguments\0$fields";
    while ($order ne '') {
        my $written = syswrite $child->{order}, $order;
        last if !defined $written && $! != 4;    # It was killed; that it ended will be seen.
        substr($order, 0, $written // 0) = '';
    }
    close $child->{order};
    # Ends when the program is executed, which is at once.
    my $errno = '';
    while (!defined sysread($child->{failed}, $errno, 16)) { last if $! != 4 }
    if ($errno ne '') {
        while (waitpid($pid, 0) < 0 && $! == 4) { }
        return say_all("fail $id $errno\n");
    }
    nonblocking($child->{$_}) for qw(in out err);
    my $job = { pid => $pid, limit => $limit, stdin => $stdin, in => $child->{in},
        pipes => [$child->{out}, $child->{err}], said => ['', ''] };
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
    # The next spare is made in a pause, not while what was just started has most to do.
    my $wait = defined $spare || (defined $pause && $pause < 0.005) ? $pause : 0.005;
    my $ready = select $readable, $writable, undef, $wait;
    next if $ready < 0;
    prepare() if $ready == 0 && !defined $spare && (!defined $pause || $pause >= $wait);
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
