// A node of jDiameter: `server HOST REALM PORT` answers ACR, `client HOST REALM PORT` sends as many as each line of its input
// says, and prints result and Origin-Host of each answer. Its peer, the router, is dsr.example.

import static org.jdiameter.server.impl.helpers.Parameters.*;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jdiameter.api.Answer;
import org.jdiameter.api.Avp;
import org.jdiameter.api.AvpSet;
import org.jdiameter.api.Message;
import org.jdiameter.api.Mode;
import org.jdiameter.api.Network;
import org.jdiameter.api.Request;
import org.jdiameter.api.Session;
import org.jdiameter.api.SessionFactory;
import org.jdiameter.server.impl.StackImpl;
import org.jdiameter.server.impl.helpers.EmptyConfiguration;

public class Peer {
    static final int ACCOUNTING = 271;
    static final long APPLICATION = 3;
    static final String ROUTER = "dsr.example";
    static final long PATIENCE_SECONDS = 45;

    /** What a stack needs to know; a client connects to the router at `port`, a server listens there. */
    static class Settings extends EmptyConfiguration {
        Settings(String host, String realm, int port, boolean isServer) {
            super();
            // A port of its own in the name of a client, at which it does not listen.
            add(OwnDiameterURI, "aaa://" + host + ":" + (isServer ? port : 1));
            add(OwnIPAddress, "127.0.0.1");
            add(OwnRealm, realm);
            add(OwnVendorID, 13L);
            add(OwnProductName, "jDiameter");
            add(AcceptUndefinedPeer, true);
            add(DuplicateProtection, false);
            add(ApplicationId, getInstance().add(VendorId, 0L).add(AuthApplId, 0L).add(AcctApplId, APPLICATION));
            if (!isServer) {
                add(PeerTable, getInstance()
                    .add(PeerName, "aaa://" + ROUTER + ":" + port)
                    .add(PeerIp, "127.0.0.1")
                    .add(PeerAttemptConnection, true)
                    .add(PeerRating, 1));
                add(RealmTable, getInstance().add(RealmEntry, getInstance()
                    .add(RealmName, realm)
                    .add(ApplicationId, getInstance().add(VendorId, 0L).add(AuthApplId, 0L).add(AcctApplId, APPLICATION))
                    .add(RealmHosts, ROUTER)
                    .add(RealmLocalAction, "LOCAL")
                    .add(RealmEntryIsDynamic, false)
                    .add(RealmEntryExpTime, 1000L)));
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        String role = arguments[0], host = arguments[1], realm = arguments[2];
        int port = Integer.parseInt(arguments[3]);
        boolean isServer = role.equals("server");
        StackImpl stack = new StackImpl();
        SessionFactory sessions = stack.init(new Settings(host, realm, port, isServer));
        org.jdiameter.api.ApplicationId accounting = org.jdiameter.api.ApplicationId.createByAccAppId(0, APPLICATION);
        stack.unwrap(Network.class).addNetworkReqListener(request -> answer(request, host, realm), accounting);
        if (isServer) {
            stack.start();
            System.out.println("listening");
            Thread.sleep(Long.MAX_VALUE);
        }
        stack.start(Mode.ANY_PEER, PATIENCE_SECONDS, TimeUnit.SECONDS);
        System.out.println("up");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        int number = 0;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            for (int count = Integer.parseInt(line); count > 0; count--) {
                System.out.println(ask(sessions, accounting, realm, ++number));
            }
        }
        System.exit(0);
    }

    static Answer answer(Request request, String host, String realm) {
        Answer answer = request.createAnswer(2001);
        AvpSet asked = request.getAvps();
        // The stack adds neither.
        answer.getAvps().addAvp(Avp.ORIGIN_HOST, host, true, false, true);
        answer.getAvps().addAvp(Avp.ORIGIN_REALM, realm, true, false, true);
        for (int code : new int[] {480, 485, 259}) {
            Avp avp = asked.getAvp(code);
            if (avp != null && answer.getAvps().getAvp(code) == null) {
                answer.getAvps().addAvp(avp);
            }
        }
        return answer;
    }

    static String ask(SessionFactory sessions, org.jdiameter.api.ApplicationId application, String realm, int number)
        throws Exception {
        Session session = sessions.getNewSession();
        Request request = session.createRequest(ACCOUNTING, application, realm);
        // Without it the request is not for agents (RFC 6733 section 3).
        request.setProxiable(true);
        request.getAvps().addAvp(480, 1);
        request.getAvps().addAvp(485, (long) number, true);
        Future<Message> sent = session.send(request);
        Message answer = sent.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        session.release();
        AvpSet avps = answer.getAvps();
        return avps.getAvp(Avp.RESULT_CODE).getUnsigned32() + " " + avps.getAvp(Avp.ORIGIN_HOST).getDiameterIdentity();
    }
}
