# Read by interactive shells and, by way of /etc/profile, by login shells: what is exported at the
# end of this file reaches every command.
case $- in
  *i*)
    HISTCONTROL=ignoreboth
    HISTSIZE=1000
    HISTFILESIZE=2000
    shopt -s histappend checkwinsize
    alias ls='ls --color=auto'
    alias grep='grep --color=auto'
    alias ll='ls -alF'
    ;;
esac
