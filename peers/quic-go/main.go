// A relay over quic-go: QUIC v1 over one path. docs/reference/stacks.md describes relays.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	alpn      = "relay"
	cancelled = 1 // application error code of a cancelled stream

	reportEvery = time.Second
)

// records writes records to standard output, one at a time.
var records struct {
	sync.Mutex
	*json.Encoder
}

func record(fields map[string]any) {
	records.Lock()
	defer records.Unlock()
	if err := records.Encode(fields); err != nil {
		log.Fatal(err)
	}
}

// reportPath prints a record of the client's path; nil before it is connected.
var reportPath atomic.Pointer[func()]

// end prints the last records and ends the program.
func end(reason string, status int) {
	if report := reportPath.Load(); report != nil {
		(*report)()
	}
	record(map[string]any{"event": "closed", "reason": reason})
	os.Exit(status)
}

// watch prints a record of the path every second, and ends the program with the connection.
func watch(connection *quic.Conn, name string) {
	report := func() {
		stats := connection.ConnectionStats()
		record(map[string]any{"event": "path", "name": name, "state": "active", "bytes_sent": stats.BytesSent,
			"bytes_received": stats.BytesReceived, "srtt_us": stats.SmoothedRTT.Microseconds()})
	}
	reportPath.Store(&report)
	every := time.NewTicker(reportEvery)
	for {
		report()
		select {
		case <-every.C:
		case <-connection.Context().Done():
			end(fmt.Sprint(context.Cause(connection.Context())), 1)
		}
	}
}

type paths []string

func (p *paths) String() string { return strings.Join(*p, ",") }
func (p *paths) Set(text string) error {
	if !strings.Contains(text, ":") {
		return errors.New("it takes NAME:ADDR")
	}
	*p = append(*p, text)
	return nil
}

func quicConfig() *quic.Config {
	return &quic.Config{
		MaxStreamReceiveWindow:         6 << 20, // the same as libxlink's
		InitialStreamReceiveWindow:     6 << 20,
		MaxConnectionReceiveWindow:     15 << 20,
		InitialConnectionReceiveWindow: 15 << 20,
		MaxIncomingStreams:             1000,
		MaxIdleTimeout:                 120 * time.Second,
		HandshakeIdleTimeout:           30 * time.Second,
	}
}

type halfCloser interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// copyBoth copies both directions, including the end of each. An error ends both.
func copyBoth(local halfCloser, stream *quic.Stream) {
	defer local.Close()
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := io.Copy(stream, local); err != nil {
			stream.CancelWrite(cancelled)
			stream.CancelRead(cancelled)
			return
		}
		stream.Close()
	})
	both.Go(func() {
		if _, err := io.Copy(local, stream); err != nil {
			stream.CancelRead(cancelled)
			stream.CancelWrite(cancelled)
			local.Close()
			return
		}
		_ = local.CloseWrite()
	})
	both.Wait()
}

// A listener on a Unix socket with a reserved descriptor. If the process has no other left, it is used to accept and
// close a connection, which would otherwise wait.
type listener struct {
	*net.UnixListener
	spare *os.File
}

func (l *listener) hold() bool {
	if l.spare == nil {
		l.spare, _ = os.Open(os.DevNull)
	}
	return l.spare != nil
}

// accept returns the next connection for which there is a descriptor.
func (l *listener) accept() (*net.UnixConn, error) {
	for {
		local, err := l.AcceptUnix()
		switch {
		case err == nil && l.hold():
			return local, nil
		case err == nil:
			local.Close()
			l.hold()
		case !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE):
			return nil, err
		case l.spare != nil:
			l.spare.Close()
			l.spare = nil
		default:
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// keyLog opens $SSLKEYLOGFILE; nil if it is not set.
func keyLog() (io.Writer, error) {
	name := os.Getenv("SSLKEYLOGFILE")
	if name == "" {
		return nil, nil
	}
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

func client(socket, server string, all paths) error {
	if len(all) == 0 {
		return errors.New("--path is required")
	}
	name, address, _ := strings.Cut(all[0], ":")
	remote, err := net.ResolveUDPAddr("udp", server)
	if err != nil {
		return err
	}
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(address)})
	if err != nil {
		return err
	}
	listening, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	locals := &listener{UnixListener: listening}
	locals.hold()
	transport := &quic.Transport{Conn: udp}
	secrets, err := keyLog()
	if err != nil {
		return err
	}
	// The first local connection starts the handshake, so that it is part of the first request.
	connect := sync.OnceValues(func() (*quic.Conn, error) {
		connection, err := transport.Dial(context.Background(), remote,
			&tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}, KeyLogWriter: secrets}, quicConfig())
		if err != nil {
			return nil, err
		}
		go watch(connection, name)
		return connection, nil
	})
	record(map[string]any{"event": "ready"})
	for {
		local, err := locals.accept()
		if err != nil {
			return err
		}
		go func() {
			connection, err := connect()
			if err != nil {
				end(err.Error(), 1)
			}
			stream, err := connection.OpenStreamSync(context.Background())
			if err != nil {
				local.Close()
				return
			}
			copyBoth(local, stream)
		}()
	}
}

func server(listen, upstream, certificate, key string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	listener, err := quic.ListenAddr(listen,
		&tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{alpn}}, quicConfig())
	if err != nil {
		return err
	}
	record(map[string]any{"event": "ready"})
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					return
				}
				go func() {
					local, err := net.Dial("tcp", upstream)
					if err != nil {
						stream.CancelRead(cancelled)
						stream.CancelWrite(cancelled)
						return
					}
					copyBoth(local.(*net.TCPConn), stream)
				}()
			}
		}()
	}
}

func version() string {
	information, _ := debug.ReadBuildInfo()
	for _, module := range information.Deps {
		if strings.HasSuffix(module.Path, "/quic-go") {
			return "quic-go " + module.Version
		}
	}
	return "quic-go"
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("quic-go relay: ")
	records.Encoder = json.NewEncoder(os.Stdout)
	if len(os.Args) < 2 {
		log.Fatal("The first argument is 'client', 'server' or 'version'.")
	}
	var all paths
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	socket := flags.String("socket", "", "the Unix socket to listen on")
	to := flags.String("server", "", "ADDR:PORT of the server's relay")
	flags.Var(&all, "path", "NAME:ADDR, the first is used")
	listen := flags.String("listen", "", "ADDR:PORT to listen on")
	upstream := flags.String("upstream", "", "ADDR:PORT of the HTTP/1.1 server")
	certificate := flags.String("certificate", "", "PEM file")
	key := flags.String("key", "", "PEM file")
	_ = flags.Parse(os.Args[2:])
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		end("signal", 0)
	}()
	var err error
	switch os.Args[1] {
	case "client":
		err = client(*socket, *to, all)
	case "server":
		err = server(*listen, *upstream, *certificate, *key)
	case "version":
		fmt.Println(version())
	default:
		err = fmt.Errorf("'%s' is not 'client', 'server' or 'version'", os.Args[1])
	}
	if err != nil {
		log.Fatal(err)
	}
}
