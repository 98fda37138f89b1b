package shop;

import com.fasterxml.jackson.databind.ObjectMapper;
import example.paybell.IpnServlet;
import example.paybell.KeyFile;
import example.paybell.Received;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;

/** Stores each IPN once, as a file in the folder inbox. PAYBELL_KEYS is the file of the keys. */
@SpringBootApplication
public class Receiver {
    private final Path inbox = Files.createDirectories(Path.of("inbox"));

    public Receiver() throws IOException {}

    @Bean
    ServletRegistrationBean<IpnServlet> ipn() throws IOException {
        var keys = new KeyFile(Path.of(System.getenv("PAYBELL_KEYS")));
        return new ServletRegistrationBean<>(new IpnServlet(keys, this::store), "/ipn");
    }

    /** A table with a unique key on the id, written with the rest of your work, is better. */
    private void store(Received received) throws IOException {
        String id = received.ipn().id();
        if (!id.matches("[0-9A-Za-z-]{1,64}")) throw new IOException("the id is no file name");
        Path temporary = Files.createTempFile(inbox, ".new-", "");
        try {
            byte[] text = new ObjectMapper().writeValueAsBytes(received.ipn());
            Files.write(temporary, text, StandardOpenOption.WRITE, StandardOpenOption.SYNC);
            Files.createLink(inbox.resolve(id + ".json"), temporary); // Of two at once, one fails.
        } catch (FileAlreadyExistsException error) {
            // It came before.
        } finally {
            Files.delete(temporary);
        }
    }

    public static void main(String[] args) {
        var program = new SpringApplication(Receiver.class);
        program.setDefaultProperties(Map.of("server.address", "127.0.0.1", "server.port", "${PORT:8080}"));
        program.run(args);
    }
}
