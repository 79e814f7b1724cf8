// A process of queue_kills.py for Bull and BullMQ, as queue_child.py is for the others:
// node queue_child.js LIBRARY ROLE PORT JOURNAL

const fs = require("node:fs");

const [library, role, port, path] = process.argv.slice(2);
const BACKLOG = 60;
const LONGEST = 20; // milliseconds that a job takes
const PATIENCE = 6000; // milliseconds after which a job is given to another worker
const connection = { port: Number(port), maxRetriesPerRequest: null };
const journal = fs.openSync(path, "a");

const write = (event, job) => fs.writeSync(journal, `${event} ${job} ${process.pid}\n`);
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function workOn({ data }) {
  write("run", data.job);
  await pause(Math.random() * LONGEST);
  write("ran", data.job);
}

function open() {
  const settings = {
    lockDuration: PATIENCE,
    stalledInterval: PATIENCE / 2,
    maxStalledCount: 100,
  };
  if (library === "bull") {
    const Bull = require("bull");
    const queue = new Bull("kills", { redis: connection, settings });
    if (role === "work") queue.process("run", 2, workOn);
    return { queue, worker: queue };
  }
  const { Queue, Worker } = require("bullmq");
  if (role === "produce") return { queue: new Queue("kills", { connection }) };
  return { worker: new Worker("kills", workOn, { connection, concurrency: 2, ...settings }) };
}

async function produce(queue) {
  for (let number = 0; ; number++) {
    const job = `${process.pid}-${number}`;
    write("ask", job);
    try {
      await queue.add("run", { job }, { jobId: job });
      write("kept", job);
    } catch (error) {
      write("doubt", job);
      console.error(`${job}: ${error.message}`);
      await pause(50);
    }
    while (number % 5 === 0) {
      const waiting = await queue.getWaitingCount().catch(() => BACKLOG);
      if (waiting < BACKLOG) break;
      await pause(20);
    }
  }
}

const { queue, worker } = open();
for (const one of [queue, worker]) one?.on("error", (error) => console.error(error.message));
if (role === "produce") {
  produce(queue);
} else {
  worker.on("completed", (job) => write("gone", job.data.job));
  process.on("SIGTERM", () => worker.close().then(() => process.exit()));
}
