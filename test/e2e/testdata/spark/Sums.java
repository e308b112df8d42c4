import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * One application of Spark that lives as long as the test. POST /NAME?by=N runs a job with a shuffle and answers with the sum of
 * 0, N, 2N, ... 9999N; what it shuffled is kept. GET /NAME computes the sum again from that: what is lost of it with a worker,
 * Spark has to compute again. GET / is the id of the application.
 */
public final class Sums {
  static final int NUMBERS = 10000, PIECES = 6;
  static final ConcurrentHashMap<String, JavaPairRDD<Long, Long>> kept = new ConcurrentHashMap<>();

  public static void main(String[] args) throws Exception {
    JavaSparkContext spark = new JavaSparkContext(new SparkConf().setAppName("sums"));
    HttpServer server = HttpServer.create(new InetSocketAddress(8080), 16);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/", call -> {
      try {
        answer(spark, call);
      } catch (Throwable e) {
        say(call, 500, e.toString());
      }
    });
    server.start();
    while (!spark.sc().isStopped()) {
      Thread.sleep(200);
    }
    System.exit(1); // the masters ended it
  }

  static void answer(JavaSparkContext spark, HttpExchange call) throws IOException {
    String name = call.getRequestURI().getPath().substring(1);
    if (name.isEmpty()) {
      say(call, 200, spark.sc().applicationId());
    } else if (call.getRequestMethod().equals("POST")) {
      long by = Long.parseLong(call.getRequestURI().getQuery().substring("by=".length()));
      JavaPairRDD<Long, Long> parts = numbers(spark).mapToPair(n -> new Tuple2<>(n % 97, n * by)).reduceByKey(Long::sum);
      long sum = parts.values().reduce(Long::sum);
      kept.put(name, parts);
      say(call, 200, Long.toString(sum));
    } else if (kept.containsKey(name)) {
      say(call, 200, Long.toString(kept.get(name).values().reduce(Long::sum)));
    } else {
      say(call, 404, "there was no such job");
    }
  }

  /** numbers are computed by the executors; each piece takes a while, so that there is one under way at any moment. */
  static JavaRDD<Long> numbers(JavaSparkContext spark) {
    return spark.parallelize(IntStream.range(0, PIECES).boxed().collect(Collectors.toList()), PIECES).flatMap(piece -> {
      Thread.sleep(100);
      return LongStream.range(0, NUMBERS).filter(n -> n % PIECES == piece).boxed().iterator();
    });
  }

  static void say(HttpExchange call, int status, String text) throws IOException {
    byte[] content = text.getBytes(StandardCharsets.UTF_8);
    call.sendResponseHeaders(status, content.length);
    call.getResponseBody().write(content);
    call.close();
  }
}
