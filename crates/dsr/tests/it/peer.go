// A node of go-diameter: `server HOST REALM PORT` answers ACR, `client HOST REALM PORT` sends as many as each line of its
// input says, and prints result and Origin-Host of each answer.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/fiorix/go-diameter/v4/diam"
	"github.com/fiorix/go-diameter/v4/diam/avp"
	"github.com/fiorix/go-diameter/v4/diam/datatype"
	"github.com/fiorix/go-diameter/v4/diam/sm"
)

const (
	accounting = 3
	patience   = 15 * time.Second
)

func fail(err error) {
	fmt.Println(err)
	os.Exit(1)
}

func main() {
	role, host, realm, port := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	node := sm.New(&sm.Settings{
		OriginHost:      datatype.DiameterIdentity(host),
		OriginRealm:     datatype.DiameterIdentity(realm),
		VendorID:        13,
		ProductName:     "go-diameter",
		HostIPAddresses: []datatype.Address{datatype.Address(net.ParseIP("127.0.0.1"))},
	})
	go func() {
		for report := range node.ErrorReports() {
			fmt.Fprintln(os.Stderr, report)
		}
	}()
	if role == "server" {
		serve(node, host, realm, port)
	} else {
		ask(node, host, realm, port)
	}
}

func serve(node *sm.StateMachine, host, realm, port string) {
	node.HandleFunc("ACR", func(connection diam.Conn, request *diam.Message) {
		answer := request.Answer(diam.Success)
		// The answer has the session before everything else (RFC 6733 section 8.8).
		answer.AVP = nil
		answer.Header.MessageLength = 20
		copyOf(answer, request, avp.SessionID)
		answer.NewAVP(avp.ResultCode, avp.Mbit, 0, datatype.Unsigned32(diam.Success))
		answer.NewAVP(avp.OriginHost, avp.Mbit, 0, datatype.DiameterIdentity(host))
		answer.NewAVP(avp.OriginRealm, avp.Mbit, 0, datatype.DiameterIdentity(realm))
		for _, code := range []int{avp.AccountingRecordType, avp.AccountingRecordNumber, avp.AcctApplicationID} {
			copyOf(answer, request, code)
		}
		if _, err := answer.WriteTo(connection); err != nil {
			fail(err)
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fail(err)
	}
	fmt.Println("listening")
	fail((&diam.Server{Handler: node}).Serve(listener))
}

func copyOf(answer, request *diam.Message, code int) {
	if found, err := request.FindAVP(code, 0); err == nil {
		answer.AddAVP(found)
	}
}

func ask(node *sm.StateMachine, host, realm, port string) {
	answers := make(chan string, 1)
	node.HandleFunc("ACA", func(_ diam.Conn, answer *diam.Message) {
		result, err := answer.FindAVP(avp.ResultCode, 0)
		if err != nil {
			fail(err)
		}
		origin, err := answer.FindAVP(avp.OriginHost, 0)
		if err != nil {
			fail(err)
		}
		answers <- fmt.Sprintf("%d %s", result.Data.(datatype.Unsigned32), string(origin.Data.(datatype.DiameterIdentity)))
	})
	client := &sm.Client{
		Handler:           node,
		MaxRetransmits:    3,
		EnableWatchdog:    true,
		WatchdogInterval:  5 * time.Second,
		AcctApplicationID: []*diam.AVP{diam.NewAVP(avp.AcctApplicationID, avp.Mbit, 0, datatype.Unsigned32(accounting))},
	}
	connection, err := client.Dial("127.0.0.1:" + port)
	if err != nil {
		fail(err)
	}
	fmt.Println("up")
	lines := bufio.NewScanner(os.Stdin)
	session := 0
	for lines.Scan() {
		count, err := strconv.Atoi(lines.Text())
		if err != nil {
			fail(err)
		}
		for range make([]struct{}, count) {
			session++
			request := diam.NewRequest(diam.Accounting, accounting, nil)
			request.Header.CommandFlags |= diam.ProxiableFlag
			request.NewAVP(avp.SessionID, avp.Mbit, 0, datatype.UTF8String(fmt.Sprintf("%s;1;%d", host, session)))
			request.NewAVP(avp.OriginHost, avp.Mbit, 0, datatype.DiameterIdentity(host))
			request.NewAVP(avp.OriginRealm, avp.Mbit, 0, datatype.DiameterIdentity(realm))
			request.NewAVP(avp.DestinationRealm, avp.Mbit, 0, datatype.DiameterIdentity(realm))
			request.NewAVP(avp.AccountingRecordType, avp.Mbit, 0, datatype.Enumerated(1))
			request.NewAVP(avp.AccountingRecordNumber, avp.Mbit, 0, datatype.Unsigned32(session))
			request.NewAVP(avp.AcctApplicationID, avp.Mbit, 0, datatype.Unsigned32(accounting))
			if _, err := request.WriteTo(connection); err != nil {
				fail(err)
			}
			select {
			case answer := <-answers:
				fmt.Println(answer)
			case <-time.After(patience):
				fmt.Println("no answer")
			}
		}
	}
}
