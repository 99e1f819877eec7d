// An SMSC and an HLR of jSS7 behind a signal transfer point, each with M3UA over TCP: the SMSC asks the HLR for routing
// information of short messages (sendRoutingInfoForSM, TS 29.002 §12.1), a dialogue for each number, and the transfer point for the
// state of equipment (checkIMEI, §8.7.1).
//
//   MapPeers HOST PORT SMSC-PORT HLR-PORT COUNT IMEI...
//
// Both sides print a line for each message of MAP that they read.

import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.nio.file.Files;
import org.mobicents.protocols.api.IpChannelType;
import org.mobicents.protocols.sctp.netty.NettySctpManagementImpl;
import org.mobicents.protocols.ss7.map.api.primitives.AddressNature;
import org.mobicents.protocols.ss7.map.api.primitives.ISDNAddressString;
import org.mobicents.protocols.ss7.indicator.NatureOfAddress;
import org.mobicents.protocols.ss7.indicator.NumberingPlan;
import org.mobicents.protocols.ss7.indicator.RoutingIndicator;
import org.mobicents.protocols.ss7.m3ua.As;
import org.mobicents.protocols.ss7.m3ua.ExchangeType;
import org.mobicents.protocols.ss7.m3ua.Functionality;
import org.mobicents.protocols.ss7.m3ua.IPSPType;
import org.mobicents.protocols.ss7.m3ua.impl.M3UAManagementImpl;
import org.mobicents.protocols.ss7.m3ua.impl.parameter.ParameterFactoryImpl;
import org.mobicents.protocols.ss7.m3ua.parameter.TrafficModeType;
import org.mobicents.protocols.ss7.map.MAPStackImpl;
import org.mobicents.protocols.ss7.map.api.MAPApplicationContext;
import org.mobicents.protocols.ss7.map.api.MAPApplicationContextName;
import org.mobicents.protocols.ss7.map.api.MAPApplicationContextVersion;
import org.mobicents.protocols.ss7.map.api.MAPDialog;
import org.mobicents.protocols.ss7.map.api.MAPDialogListener;
import org.mobicents.protocols.ss7.map.api.MAPParameterFactory;
import org.mobicents.protocols.ss7.map.api.MAPProvider;
import org.mobicents.protocols.ss7.map.api.service.mobility.MAPDialogMobility;
import org.mobicents.protocols.ss7.map.api.service.mobility.MAPServiceMobilityListener;
import org.mobicents.protocols.ss7.map.api.service.mobility.imei.CheckImeiResponse;
import org.mobicents.protocols.ss7.map.api.errors.MAPErrorMessage;
import org.mobicents.protocols.ss7.map.api.service.sms.MAPDialogSms;
import org.mobicents.protocols.ss7.map.api.service.sms.MAPServiceSmsListener;
import org.mobicents.protocols.ss7.map.api.service.sms.SendRoutingInfoForSMRequest;
import org.mobicents.protocols.ss7.map.api.service.sms.SendRoutingInfoForSMResponse;
import org.mobicents.protocols.ss7.sccp.LoadSharingAlgorithm;
import org.mobicents.protocols.ss7.sccp.OriginationType;
import org.mobicents.protocols.ss7.sccp.RuleType;
import org.mobicents.protocols.ss7.sccp.impl.SccpStackImpl;
import org.mobicents.protocols.ss7.sccp.impl.router.RouterImpl;
import org.mobicents.protocols.ss7.sccp.parameter.ParameterFactory;
import org.mobicents.protocols.ss7.sccp.parameter.SccpAddress;

public final class MapPeers {
    static final int STP = 100;
    static final int HLR = 6;
    static final int SMSC = 8;
    static final int EIR = 9;
    /** A node: its point code, routing context, subsystem and global title, and the port that it connects from. */
    static final class Node {
        final String name;
        final M3UAManagementImpl m3ua;
        final MAPStackImpl map;
        final ParameterFactory sccp;
        final int subsystem;
        final String title;

        Node(String name, int code, int context, int subsystem, String title, String address, int port, String host, int stp)
                throws Exception {
            this.name = name;
            this.subsystem = subsystem;
            this.title = title;
            String folder = Files.createTempDirectory(name).toString();
            NettySctpManagementImpl transport = new NettySctpManagementImpl(name);
            transport.setPersistDir(folder);
            transport.start();
            transport.setConnectDelay(200);
            transport.addAssociation(address, port, host, stp, name, IpChannelType.TCP, null);
            m3ua = new M3UAManagementImpl(name, null);
            m3ua.setPersistDir(folder);
            m3ua.setTransportManagement(transport);
            SccpStackImpl stack = new SccpStackImpl(name);
            stack.setPersistDir(folder);
            stack.setMtp3UserPart(1, m3ua);
            m3ua.start();
            stack.start();
            sccp = stack.getSccpProvider().getParameterFactory();
            stack.getRouter().addMtp3ServiceAccessPoint(1, 1, code, 2, 0);
            stack.getRouter().addMtp3Destination(1, 1, STP, STP, 0, 255, 255);
            stack.getSccpResource().addRemoteSpc(1, STP, 0, 0);
            stack.getSccpResource().addRemoteSsn(1, STP, EIR, 0, false);
            // Every title goes to the signal transfer point, which translates it.
            RouterImpl router = (RouterImpl) stack.getRouter();
            router.addRoutingAddress(1, address("-", STP, 0));
            router.addRule(1, RuleType.SOLITARY, LoadSharingAlgorithm.Undefined, OriginationType.ALL, address("*", 0, 0), "K", 1, -1,
                    null, 0, null);
            map = new MAPStackImpl(name, stack.getSccpProvider(), subsystem);
            map.start();
            ParameterFactoryImpl parameters = new ParameterFactoryImpl();
            m3ua.createAs(name, Functionality.AS, ExchangeType.SE, IPSPType.CLIENT,
                    parameters.createRoutingContext(new long[] {context}),
                    parameters.createTrafficModeType(TrafficModeType.Loadshare), 1, null);
            m3ua.createAspFactory(name, name, false);
            m3ua.assignAspToAs(name, name);
            m3ua.addRoute(STP, -1, -1, name);
            m3ua.startAsp(name);
        }

        SccpAddress address(String digits, int code, int ssn) {
            return sccp.createSccpAddress(RoutingIndicator.ROUTING_BASED_ON_GLOBAL_TITLE,
                    sccp.createGlobalTitle(digits, 0, NumberingPlan.ISDN_TELEPHONY, null, NatureOfAddress.INTERNATIONAL), code, ssn);
        }

        SccpAddress own() {
            return address(title, 0, subsystem);
        }

        /** Sends all events of MAP, by the name of the method that takes them. */
        void listen(Events events) {
            Object listener = Proxy.newProxyInstance(MapPeers.class.getClassLoader(),
                    new Class<?>[] {MAPDialogListener.class, MAPServiceSmsListener.class, MAPServiceMobilityListener.class},
                    (proxy, method, arguments) -> {
                        switch (method.getName()) {
                            case "hashCode":
                                return System.identityHashCode(proxy);
                            case "equals":
                                return proxy == arguments[0];
                            case "toString":
                                return name;
                            default:
                                events.take(method.getName(), arguments[0], arguments);
                                return null;
                        }
                    });
            MAPProvider provider = map.getMAPProvider();
            provider.addMAPDialogListener((MAPDialogListener) listener);
            provider.getMAPServiceSms().addMAPServiceListener((MAPServiceSmsListener) listener);
            provider.getMAPServiceSms().acivate();
            provider.getMAPServiceMobility().addMAPServiceListener((MAPServiceMobilityListener) listener);
            provider.getMAPServiceMobility().acivate();
        }

        void awaitActive() throws Exception {
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            for (As server : m3ua.getAppServers()) {
                while (!"ACTIVE".equals(server.getState().getName())) {
                    if (System.nanoTime() > end) {
                        throw new IllegalStateException(name + " is not active: " + server.getState().getName());
                    }
                    Thread.sleep(20);
                }
            }
            print(name + ": active");
        }
    }

    interface Events {
        void take(String event, Object first, Object[] all) throws Exception;
    }

    static synchronized void print(String line) {
        System.out.println(line);
    }

    static ISDNAddressString international(MAPParameterFactory factory, String digits) {
        return factory.createISDNAddressString(AddressNature.international_number,
                org.mobicents.protocols.ss7.map.api.primitives.NumberingPlan.ISDN, digits);
    }

    /** The subscriber of a number has the IMSI with its last nine digits, and is served by the node with its last two. */
    static void serve(Node hlr) {
        MAPParameterFactory factory = hlr.map.getMAPProvider().getMAPParameterFactory();
        hlr.listen((event, first, all) -> {
            switch (event) {
                case "onSendRoutingInfoForSMRequest":
                    SendRoutingInfoForSMRequest request = (SendRoutingInfoForSMRequest) first;
                    String number = request.getMsisdn().getAddress();
                    print("hlr: " + number + " for " + request.getServiceCentreAddress().getAddress());
                    MAPDialogSms dialog = (MAPDialogSms) request.getMAPDialog();
                    String tail = number.substring(number.length() - 9);
                    dialog.addSendRoutingInfoForSMResponse(request.getInvokeId(), factory.createIMSI("232010" + tail),
                            factory.createLocationInfoWithLMSI(international(factory, "43660999" + tail.substring(7)), null, null, false,
                                    null),
                            null, null, null);
                    break;
                case "onDialogDelimiter":
                    ((MAPDialog) first).close(false);
                    break;
                case "onRejectComponent", "onErrorComponent", "onDialogReject", "onDialogUserAbort", "onDialogProviderAbort",
                        "onDialogNotice", "onDialogTimeout":
                    print("hlr: " + event);
                    break;
                default:
            }
        });
    }

    static void ask(Node smsc, int count, String hlr, String[] equipment) throws Exception {
        CountDownLatch open = new CountDownLatch(count + equipment.length);
        ConcurrentHashMap<Long, String> numbers = new ConcurrentHashMap<>();
        smsc.listen((event, first, all) -> {
            switch (event) {
                case "onSendRoutingInfoForSMResponse":
                    SendRoutingInfoForSMResponse answer = (SendRoutingInfoForSMResponse) first;
                    print("smsc: " + numbers.get(answer.getMAPDialog().getLocalDialogId()) + " is " + answer.getIMSI().getData()
                            + " at " + answer.getLocationInfoWithLMSI().getNetworkNodeNumber().getAddress());
                    break;
                case "onCheckImeiResponse":
                    CheckImeiResponse status = (CheckImeiResponse) first;
                    print("smsc: " + numbers.get(status.getMAPDialog().getLocalDialogId()) + " is " + status.getEquipmentStatus());
                    break;
                case "onErrorComponent":
                    print("smsc: " + numbers.get(((MAPDialog) first).getLocalDialogId()) + " has error "
                            + ((MAPErrorMessage) all[2]).getErrorCode());
                    break;
                case "onDialogClose":
                    open.countDown();
                    break;
                case "onRejectComponent", "onDialogReject", "onDialogUserAbort", "onDialogProviderAbort",
                        "onDialogNotice", "onDialogTimeout":
                    print("smsc: " + event);
                    break;
                default:
            }
        });
        MAPParameterFactory factory = smsc.map.getMAPProvider().getMAPParameterFactory();
        MAPApplicationContext context = MAPApplicationContext.getInstance(MAPApplicationContextName.shortMsgGatewayContext,
                MAPApplicationContextVersion.version3);
        for (int at = 0; at < count; at++) {
            // 11 or 12 digits: both fillers.
            String number = (at % 2 == 0 ? "43660" : "436601") + String.format("%06d", 100_000 + at);
            MAPDialogSms dialog = smsc.map.getMAPProvider().getMAPServiceSms().createNewDialog(context, smsc.own(), null,
                    smsc.address(hlr, 0, HLR), null);
            numbers.put(dialog.getLocalDialogId(), number);
            dialog.addSendRoutingInfoForSMRequest(
                    international(factory, number), true, international(factory, smsc.title), null, true, null, null, null, false, null,
                    false, false, null);
            dialog.send();
        }
        MAPApplicationContext checks = MAPApplicationContext.getInstance(MAPApplicationContextName.equipmentMngtContext,
                MAPApplicationContextVersion.version3);
        for (String imei : equipment) {
            MAPDialogMobility dialog = smsc.map.getMAPProvider().getMAPServiceMobility().createNewDialog(checks, smsc.own(), null,
                    smsc.sccp.createSccpAddress(RoutingIndicator.ROUTING_BASED_ON_DPC_AND_SSN, null, STP, EIR), null);
            numbers.put(dialog.getLocalDialogId(), imei);
            dialog.addCheckImeiRequest(factory.createIMEI(imei), factory.createRequestedEquipmentInfo(true, false), null);
            dialog.send();
        }
        print("smsc: " + (open.await(60, TimeUnit.SECONDS) ? "done" : open.getCount() + " dialogues without an end"));
    }

    public static void main(String[] arguments) {
        // The threads of the stack outlive an exception.
        try {
            run(arguments);
            System.exit(0);
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    static void run(String[] arguments) throws Exception {
        String host = arguments[0];
        int stp = Integer.parseInt(arguments[1]);
        Node hlr = new Node("hlr", 2, 12, HLR, "43660222", "127.0.0.12", Integer.parseInt(arguments[3]), host, stp);
        Node smsc = new Node("smsc", 1, 11, SMSC, "43660111", "127.0.0.11", Integer.parseInt(arguments[2]), host, stp);
        serve(hlr);
        hlr.awaitActive();
        smsc.awaitActive();
        ask(smsc, Integer.parseInt(arguments[4]), "43660222", Arrays.copyOfRange(arguments, 5, arguments.length));
    }
}
