package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"cursor-wrap/internal/tmux"
)

// newAttach is the subcommand that shows a session.
func newAttach(stdio, *int, *early) *cobra.Command {
	p := &place{}
	c := &cobra.Command{
		Use:   "attach NAME",
		Short: "Show a tmux session that start made, and talk to it",
		Long: `attach shows a session at this terminal, as tmux attach does; C-b d leaves it
again. From within tmux it switches to it.`,
		Args:              oneName,
		ValidArgsFunction: p.complete,
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.resolve(c.Flags()); err != nil {
				return err
			}
			return p.attach(args[0])
		},
	}
	p.register(c.Flags())
	c.Flags().Lookup("json").Hidden = true // there is nothing to tell
	return c
}

// oneName is for subcommands that are about one session.
func oneName(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("see "+c.CommandPath()+" --help", "%s takes the name of one session, not %d", c.CommandPath(), len(args))
	}
	return nil
}

// complete offers the names of what was started.
func (p *place) complete(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if p.resolve(c.Flags()) != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.names(), cobra.ShellCompDirectiveNoFileComp
}

func (p *place) names() (all []string) {
	records, _ := tmux.Started(p.dir) // what cannot be read cannot be named
	for _, r := range records {
		all = append(all, r.Name)
	}
	return all
}

// attach becomes tmux.
func (p *place) attach(name string) error {
	server := tmux.New(p.socket)
	if err := server.Available(); err != nil {
		return err
	}
	session, server, err := p.find(server, name)
	if err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	here, _, inside := strings.Cut(os.Getenv("TMUX"), ",")
	words := []string{"attach-session", "-t", session.ID}
	if inside && here == session.Socket {
		words[0] = "switch-client"
	}
	path, err := exec.LookPath("tmux")
	if err == nil {
		err = syscall.Exec(path, server.CommandLine(words...), os.Environ())
	}
	return fmt.Errorf("attach %s: tmux: %w", name, err)
}

// find is a session that is there: one that start made, or another one of the
// server.
func (p *place) find(server *tmux.Server, name string) (*tmux.Session, *tmux.Server, error) {
	ctx := context.Background()
	r, err := tmux.Find(p.dir, name)
	if known := err == nil; known {
		own := tmux.New(r.Socket)
		all, err := own.Sessions(ctx)
		if err != nil {
			return nil, nil, err
		}
		if session := tmux.In(all, r.Folder); session != nil {
			return session, own, nil
		}
		return nil, nil, fmt.Errorf("the session is closed%s; %s removes what is left of it", exitText(r.Exit), p.call("stop", name))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	all, err := server.Sessions(ctx)
	if err != nil {
		return nil, nil, err
	}
	if session := tmux.Named(all, name); session != nil {
		return session, server, nil
	}
	return nil, nil, p.unknown()
}

func (p *place) unknown() error {
	if names := p.names(); len(names) > 0 {
		return fmt.Errorf("there is no such session; there is %s", strings.Join(names, ", "))
	}
	return errors.New("there is no such session; cursor-wrap start NAME makes one")
}

func exitText(exit *int) string {
	if exit == nil {
		return ""
	}
	return fmt.Sprintf(", exit code %d", *exit)
}
