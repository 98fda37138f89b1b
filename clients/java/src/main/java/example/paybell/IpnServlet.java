package example.paybell;

import static java.lang.System.Logger.Level.ERROR;
import static java.lang.System.Logger.Level.WARNING;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.function.Supplier;

/**
 * The callback: as a servlet, or called by a Spring controller that has request and response as parameters. It answers
 * 2xx only when your function has returned; if it throws, the IPN comes again. Delivery is at least once: deduplicate by
 * the IPN's id.
 */
public final class IpnServlet extends HttpServlet {
    /** Your function. */
    @FunctionalInterface
    public interface OnIpn {
        void accept(Received received) throws Exception;
    }

    private static final long serialVersionUID = 1;
    private static final System.Logger LOG = System.getLogger("paybell");

    private final transient Supplier<Keys> keys;
    private final transient OnIpn onIpn;

    public IpnServlet(Supplier<Keys> keys, OnIpn onIpn) {
        this.keys = keys;
        this.onIpn = onIpn;
    }

    @Override
    public void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
        boolean isPost = request.getMethod().equals("POST");
        if (!isPost) response.setHeader("Allow", "POST");
        response.setStatus(isPost ? status(request) : HttpServletResponse.SC_METHOD_NOT_ALLOWED);
    }

    private int status(HttpServletRequest request) throws IOException {
        byte[] body = request.getInputStream().readNBytes(Paybell.BODY_BYTES_MAX + 1);
        Received received;
        try {
            received = Paybell.open(body, request::getHeader, keys);
        } catch (PaybellException refused) {
            String why = refused.code() + "): " + refused.finding() + " " + refused.remedy();
            LOG.log(WARNING, "IPN refused (" + why);
            return refused.code().equals("too_large") ? 413 : 400;
        }
        try {
            onIpn.accept(received);
            return HttpServletResponse.SC_NO_CONTENT;
        } catch (Exception error) {
            LOG.log(ERROR, "IPN " + received.ipn().id() + " not processed: it will be delivered again", error);
            return HttpServletResponse.SC_INTERNAL_SERVER_ERROR;
        }
    }
}
