#!/usr/bin/perl
# Forks and executes programs for a process that is too large to fork cheaply: the kernel copies the parent's page tables
# for every fork, and this one has next to none. lib/exec-helper.ts starts it, speaks to it and keeps the time limits.
# It never waits for one program alone, not even for its execve(2): a program on a dead file system holds up no other.
#
# In:   "run <id> <most bytes kept of each output> <arguments> <bytes> <stdin bytes>\n" fields stdin
#           fields, each ended by NUL: directory ('' for this one), program and arguments, NAME=value of its environment
#       "kill <id> <signal>\n"      the program alone; after SIGKILL its outputs are read no further
# Out:  "exit <id> <wait status> <stdout bytes> <stderr bytes>\n" stdout stderr     when it has ended and closed both
#       "fail <id> <errno>\n"       it could not be started
#
# It ends when its standard input does. What it runs at that moment is left to run on.
use strict;
use warnings;
use Errno qw(EAGAIN EINTR);
use Fcntl qw(F_SETFL O_NONBLOCK);
use constant { SIGKILL => 9, WNOHANG => 1, FIRST_PAUSE => 0.0005, LONGEST_PAUSE => 0.25 };    # POSIX.pm takes 1.5 MB.

my @ignored = qw(INT TERM HUP PIPE);
$SIG{$_} = 'IGNORE' for @ignored;
$SIG{CHLD} = sub { };    # Only so that an end wakes select.
binmode STDIN;
binmode STDOUT;

my %jobs;
my $requests = '';

sub answer {
    my ($text) = @_;
    while (length $text) {
        my $written = syswrite STDOUT, $text;
        exit 0 if !defined $written && $! != EINTR;    # Nobody listens any more.
        substr($text, 0, $written // 0) = '';
    }
}

# In the child: becomes the program, or writes the errno why not.
sub become {
    my ($directory, $command, $environment, $in, $out, $err, $failed) = @_;
    # Other programs' pipes must end when this helper closes them, however long the execve(2) takes.
    close $_ for grep { defined } map { ($_->{in}, @{ $_->{outputs} }) } values %jobs;
    $SIG{$_} = 'DEFAULT' for @ignored, 'CHLD';    # Ignored signals would stay ignored in the program.
    %ENV = map { split /=/, $_, 2 } @$environment;
    # Onto 0, 1 and 2; every other descriptor is closed by exec.
    if (open(STDIN, '<&', $in) && open(STDOUT, '>&', $out) && open(STDERR, '>&', $err)
        && ($directory eq '' || chdir $directory)) {
        no warnings 'exec';
        exec { $command->[0] } @$command;
    }
    syswrite $failed, $! + 0;
    kill 'KILL', $$;    # Without what Perl does at an exit.
}

sub start {
    my ($id, $limit, $arguments, $fields, $stdin) = @_;
    my ($directory, @rest) = split /\0/, $fields, -1;
    pop @rest;          # Behind the last NUL.
    my @command = splice @rest, 0, $arguments;
    my (@theirs, @ours);
    for (1 .. 4) {      # stdin, stdout, stderr, and the errno of a start that fails.
        pipe(my $read, my $write) or return answer("fail $id " . ($! + 0) . "\n");
        push @theirs, @ours ? $write : $read;
        push @ours, @ours ? $read : $write;
    }
    my $pid = fork;
    return answer("fail $id " . ($! + 0) . "\n") if !defined $pid;
    become($directory, \@command, \@rest, @theirs) if $pid == 0;
    fcntl $_, F_SETFL, O_NONBLOCK for @ours;
    my ($in, @outputs) = @ours;
    undef $in if $stdin eq '';
    $jobs{$id} = { pid => $pid, in => $in, stdin => $stdin, outputs => \@outputs, texts => ['', '', ''],
        limit => $limit };
}

sub take_requests {
    while ($requests =~ /\A([^\n]*)\n/) {
        my ($line, $head) = ($1, $+[0]);
        my ($what, $id, @numbers) = split / /, $line;
        if ($what eq 'run') {
            my ($limit, $arguments, $length, $stdin) = @numbers;
            return if length($requests) < $head + $length + $stdin;
            start($id, $limit, $arguments, substr($requests, $head, $length),
                substr($requests, $head + $length, $stdin));
            $head += $length + $stdin;
        } elsif (my $job = $jobs{$id}) {
            kill $numbers[0], $job->{pid};
            @$job{qw(in outputs)} = (undef, []) if $numbers[0] == SIGKILL;
        }
        substr($requests, 0, $head) = '';
    }
}

sub feed {
    my ($job) = @_;
    my $written = syswrite $job->{in}, $job->{stdin};
    return if !defined $written && ($! == EINTR || $! == EAGAIN);
    substr($job->{stdin}, 0, $written) = '' if defined $written;
    # A program may exit without reading its input; that is its affair.
    undef $job->{in} if !defined $written || $job->{stdin} eq '';
}

sub collect {
    my ($job, $index) = @_;
    my $read = sysread $job->{outputs}[$index], my $chunk, 65536;
    return if !defined $read && ($! == EINTR || $! == EAGAIN);
    if (!$read) {
        undef $job->{outputs}[$index];
        return;
    }
    my $room = $job->{limit} - length $job->{texts}[$index];
    $job->{texts}[$index] .= substr($chunk, 0, $room) if $room > 0;
}

# Reports what has closed its outputs and ended. Returns whether some have closed them only: the end follows soon.
sub report_ended {
    my $ending = 0;
    for my $id (keys %jobs) {
        my $job = $jobs{$id};
        next if grep { defined } @{ $job->{outputs} };
        if (waitpid($job->{pid}, WNOHANG) != $job->{pid}) {
            $ending = 1;
            next;
        }
        my ($status, $out, $err, $errno) = ($?, @{ $job->{texts} });
        delete $jobs{$id};
        answer($errno ne '' ? "fail $id $errno\n"
            : sprintf("exit %s %d %d %d\n", $id, $status, length $out, length $err) . $out . $err);
    }
    return $ending;
}

my $pause = FIRST_PAUSE;
while (1) {
    $pause = report_ended() ? $pause : undef;
    my ($readable, $writable) = ('', '');
    vec($readable, fileno STDIN, 1) = 1;
    for my $job (values %jobs) {
        vec($writable, fileno $job->{in}, 1) = 1 if $job->{in};
        vec($readable, fileno $_, 1) = 1 for grep { defined } @{ $job->{outputs} };
    }
    my $ready = select $readable, $writable, undef, $pause;
    $pause = $ready == 0 && $pause * 2 < LONGEST_PAUSE ? $pause * 2 : $ready == 0 ? LONGEST_PAUSE : FIRST_PAUSE;
    next if $ready <= 0;
    for my $job (values %jobs) {
        feed($job) if $job->{in} && vec($writable, fileno $job->{in}, 1);
        for my $index (0 .. $#{ $job->{outputs} }) {
            my $output = $job->{outputs}[$index];
            collect($job, $index) if defined $output && vec($readable, fileno $output, 1);
        }
    }
    next if !vec($readable, fileno STDIN, 1);
    my $read = sysread STDIN, $requests, 65536, length $requests;
    exit 0 if defined $read ? $read == 0 : $! != EINTR;
    take_requests();
}
