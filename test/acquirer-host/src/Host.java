import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jpos.iso.BaseChannel;
import org.jpos.iso.ISOException;
import org.jpos.iso.ISOMsg;
import org.jpos.iso.ISOPackager;
import org.jpos.iso.ISOUtil;
import org.jpos.iso.channel.NACChannel;
import org.jpos.iso.packager.ISO87APackager;
import org.jpos.iso.packager.ISO87BPackager;
import org.jpos.iso.packager.ISO93APackager;
import org.jpos.iso.packager.ISO93BPackager;

/**
 * A small acquirer's host on jPOS: {@code java Host [port] [bcd|ascii|ebcdic|bcd93|ascii93] [key of its MAC in hexadecimal]}. It tells its
 * port, then takes orders a line each: forget, break, deaf on|off, refuse on|off, totals <n>, deliver, books, batches,
 * cards, quit, rule <terminal> <trace number> <behaviour> for a message to come, as a card's token names it, and key <what field 48 brings> <the new key of its MAC>, which it takes up once that was approved.
 */
public final class Host {
    private static final byte[] TPDU = ISOUtil.hex2byte("6000010000");
    private static final long LATE_BY_MS = 300;
    private static final String SETTLEMENT_DATE = "0201";

    private final Books books = new Books();
    private final Set<BaseChannel> channels = ConcurrentHashMap.newKeySet();
    private final ScheduledExecutorService later = Executors.newScheduledThreadPool(1);
    private final String encoding;
    private volatile RetailMac mac;
    /** The MAC with a key that was sent: in use from its approval on. */
    private volatile RetailMac nextMac;
    /** The MAC for requests from before the change of the key. */
    private volatile RetailMac formerMac;
    /** Hears everything, acts on it, and answers nothing. */
    private volatile boolean deaf;
    /** Answers that were not given, for the order to deliver them after all. */
    private final Queue<ISOMsg> withheld = new ConcurrentLinkedQueue<>();
    private volatile boolean refuses;
    /** The card in each message that follows another: its type, expiry, entry mode and token. */
    private final Queue<String> cards = new ConcurrentLinkedQueue<>();

    private Host(String encoding, RetailMac mac) {
        this.encoding = encoding;
        this.mac = mac;
    }

    public static void main(String[] arguments) throws IOException {
        int port = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 0;
        String encoding = arguments.length > 1 ? arguments[1] : "bcd";
        RetailMac mac = arguments.length > 2 ? new RetailMac(ISOUtil.hex2byte(arguments[2])) : null;
        Host host = new Host(encoding, mac);
        ServerSocket server = new ServerSocket(port, 50, InetAddress.getLoopbackAddress());
        Thread accepting = new Thread(() -> host.accept(server));
        accepting.setDaemon(true);
        accepting.start();
        say("ready " + server.getLocalPort());
        host.obey();
        System.exit(0);
    }

    private void accept(ServerSocket server) {
        while (true) {
            try {
                BaseChannel channel = new NACChannel(packager(), TPDU);
                channel.accept(server);
                channels.add(channel);
                Thread session = new Thread(() -> serve(channel));
                session.setDaemon(true);
                session.start();
            } catch (IOException | ISOException error) {
                say("error " + error.getMessage());
            }
        }
    }

    private ISOPackager packager() throws ISOException {
        return switch (encoding) {
            case "ascii" -> new ISO87APackager();
            case "ebcdic" -> new EbcdicPackager();
            case "ascii93" -> new ISO93APackager();
            case "bcd93" -> new ISO93BPackager();
            default -> new ISO87BPackager();
        };
    }

    private void serve(BaseChannel channel) {
        try {
            while (true) answer(channel, channel.receive());
        } catch (IOException | ISOException error) {
            channels.remove(channel);
            disconnect(channel);
        }
    }

    private void answer(BaseChannel channel, ISOMsg request) throws IOException, ISOException {
        if (mac != null && !mac.fits(request) && (formerMac == null || !formerMac.fits(request))) {
            say("error a message whose MAC does not fit");
            return;
        }
        ISOMsg read = is93() ? Iso93.asBooksRead(request) : request;
        if (read.getMTI().startsWith("081")) {
            say("key " + read.getString(39));
            if (read.getString(39).equals("00")) {
                formerMac = mac;
                mac = nextMac;
            }
            return;
        }
        Books.Outcome outcome = books.receive(read);
        if (read.hasField(90) && request.hasField(48)) {
            cards.add(String.join(" ", request.getMTI(), request.getString(14), request.getString(22), request.getString(48)));
        }
        boolean isSignOn = read.getMTI().startsWith("08") && read.hasField(70) && read.getString(70).equals("001");
        String code = refuses && isSignOn ? "91" : outcome.code();
        ISOMsg answer = (ISOMsg) request.clone();
        answer.setResponseMTI();
        answer.unset(new int[] {37, 38, 48, 60, 62, 63, 64, 90, 128});
        String totals = read.getMTI().startsWith("050") ? books.totals(read, code) : null;
        answer.set(39, code);
        if (is93()) {
            Iso93.answer(answer, code, totals);
        } else if (totals != null) {
            answer.set(15, SETTLEMENT_DATE);
            answer.set(63, totals);
        }
        if (!outcome.reference().isEmpty()) answer.set(37, outcome.reference());
        if (!outcome.approveCode().isEmpty()) answer.set(38, outcome.approveCode());
        if (outcome.behaviour().equals("partial")) answer.set(4, ISOUtil.zeropad(Long.parseLong(request.getString(4)) / 2, 12));
        if (mac != null) mac.put(answer, packager());
        send(channel, answer, deaf && !isSignOn ? "timeout" : outcome.behaviour());
    }

    private boolean is93() {
        return encoding.endsWith("93");
    }

    private void send(BaseChannel channel, ISOMsg answer, String behaviour) throws IOException, ISOException {
        switch (behaviour) {
            case "timeout" -> withheld.add(answer);
            case "break" -> disconnect(channel);
            case "late" -> later.schedule(() -> sendNow(channel, answer), LATE_BY_MS, TimeUnit.MILLISECONDS);
            default -> channel.send(answer);
        }
    }

    private static void sendNow(BaseChannel channel, ISOMsg answer) {
        try {
            channel.send(answer);
        } catch (IOException | ISOException error) {
            say("error a late answer could not be sent");
        }
    }

    private void obey() throws IOException {
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null && !order.equals("quit"); order = orders.readLine()) {
            String[] words = order.trim().split(" ");
            boolean on = words.length > 1 && words[1].equals("on");
            switch (words[0]) {
                case "forget" -> {
                    books.forget();
                    withheld.clear();
                    cards.clear();
                    deaf = false;
                    refuses = false;
                }
                case "break" -> channels.forEach(Host::disconnect);
                case "deaf" -> deaf = on;
                case "refuse" -> refuses = on;
                case "rule" -> books.rule(words[1], words[2], words[3]);
                case "batches" -> say("batches " + books.describeBatches());
                case "totals" -> books.bias(Long.parseLong(words[1]));
                case "deliver" -> {
                    withheld.forEach(answer -> channels.forEach(channel -> sendNow(channel, answer)));
                    withheld.clear();
                }
                case "key" -> sendKey(words[1], words[2]);
                case "cards" -> cards.forEach(card -> say("card " + card));
                case "books" -> say("books " + books.describe());
                default -> say("error there is no order " + words[0]);
            }
            say("done " + order);
        }
    }

    private void sendKey(String content, String key) {
        nextMac = new RetailMac(ISOUtil.hex2byte(key));
        try {
            ISOMsg request = new ISOMsg(is93() ? "1804" : "0800");
            request.set(7, "0131093001");
            request.set(11, "000001");
            if (is93()) {
                request.set(24, "811");
                request.set(96, ISOUtil.hex2byte(content));
            } else {
                request.set(48, content);
                request.set(70, "101");
            }
            mac.put(request, packager());
            for (BaseChannel channel : channels) channel.send(request);
        } catch (IOException | ISOException error) {
            say("error the key could not be sent: " + error.getMessage());
        }
    }

    private static void disconnect(BaseChannel channel) {
        try {
            channel.disconnect();
        } catch (IOException error) {
            // It is gone already.
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
