// A job: what somebody asks the server for and waits for, such as an answer or a comparison (omnidemo/ui/job.py). One run at a time.
import { random } from "./format.js";
import { alive } from "./server.js";

const SILENCE = 5000,
  STOP_SILENCE = 3000; // milliseconds
const jobs = {}; // by widget
// Called by Gradio when the stream of a widget's event is over, well or not; without a value it was refused before it began.
export const settled = (name, value) => jobs[name].forEach(job => job.settled(value));
// What a widget got, for all its runs.
export const received = (name, value) => jobs[name].forEach(job => job.receive(value));

// `got(lines)`: new lines of the run, as text; where `whole`, all behind its head, each time. `ended(job)`: the stream is over. `drawn()`: a place
// in the line, or that it stops, is to be shown.
export const makeJob = (name, { got, ended = () => {}, drawn = () => {}, whole = false }) => {
  let seen = 0,
    heard = 0;
  const job = { run: "", busy: false, stopping: false, place: 0, trigger: null };
  job.start = (event, asked, run = random()) => {
    Object.assign(job, { run, busy: true, stopping: false, place: 0 });
    seen = 0;
    heard = Date.now();
    job.trigger(event, { asked: { ...asked, run } });
  };
  job.stop = () => {
    if (!job.busy || job.stopping) return;
    job.stopping = true;
    heard = Date.now();
    job.trigger("halt", { asked: { run: job.run } });
    drawn();
  };
  const mine = value => value.slice(0, value.indexOf("\n") + 1).includes(job.run);
  job.receive = value => {
    if (!job.busy || !mine(value)) return; // an older run's last words
    const until = value.lastIndexOf("\n") + 1,
      from = whole ? 0 : seen;
    heard = Date.now();
    if (until <= seen && !whole) return;
    seen = until;
    const lines = value.slice(from, until).split("\n"),
      others = lines.filter(line => line && !/^\{"k": ?"wait"/.test(line)),
      wait = lines.findLast(Boolean);
    job.place = others.includes(wait) ? 0 : JSON.parse(wait).place;
    if (job.place) drawn();
    else got(others.join("\n"));
  };
  const end = () => {
    if (!job.busy) return;
    job.busy = false;
    ended(job);
  };
  job.settled = value => {
    if (value === undefined || value === null) return end();
    if (!mine(value)) return;
    job.receive(value);
    end();
  };
  job.over = () => {
    end();
    clearInterval(clock);
    jobs[name] = jobs[name].filter(one => one !== job);
  };
  // A server that died or forgot us says nothing: after some silence ask whether it is there, and never hang on a stop.
  const watch = async () => {
    const { run } = job,
      silence = Date.now() - heard;
    if (!job.busy || silence < (job.stopping ? STOP_SILENCE : SILENCE)) return;
    heard = Date.now();
    if ((job.stopping || !(await alive())) && job.run === run) end();
  };
  const clock = setInterval(watch, 1000);
  jobs[name] = [...(jobs[name] ?? []), job];
  return job;
};
