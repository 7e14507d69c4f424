// A program of somebody who uses the Codex SDK: one scene per run, its result as one JSON document on stdout.
//   node sdk_program.mjs SDK_INDEX_JS '{"scene", "codexPathOverride", "baseUrl", "apiKey", "env", "thread": {...}, …}'

import { open } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const [sdk, text] = process.argv.slice(2);
const given = JSON.parse(text);
const { Codex } = await import(pathToFileURL(sdk).href);
const { codexPathOverride, baseUrl, apiKey, env, config } = given;
const codex = new Codex({ codexPathOverride, baseUrl, apiKey, env, config });
const start = () => codex.startThread(given.thread);

async function failed(work) {
  try {
    await work;
    return null;
  } catch (error) {
    return { name: error.name, message: error.message };
  }
}

const scenes = {
  async talk() {
    const thread = start();
    const first = await thread.run("turn 0");
    const second = await thread.run("turn 1");
    const again = codex.resumeThread(thread.id, given.thread);
    const third = await again.run("turn 2");
    return { ids: [thread.id, again.id], turns: [first, second, third] };
  },
  async structured() {
    const turn = await start().run("turn 0", { outputSchema: given.schema });
    return { answer: JSON.parse(turn.finalResponse), turn };
  },
  async streamed() {
    const { events } = await start().runStreamed("turn 0", given.turn);
    const seen = [];
    for await (const event of events) seen.push(event);
    return { events: seen };
  },
  async picture() {
    const input = [
      { type: "text", text: "What is this?" },
      { type: "text", text: "Be brief." },
      { type: "local_image", path: given.image },
    ];
    const thread = start();
    const turn = await thread.run(input);
    return { turn, again: given.again ? await thread.run(input) : null };
  },
  async abort() {
    const controller = new AbortController();
    const thread = start();
    const { events } = await thread.runStreamed("turn 0", { signal: controller.signal });
    const seen = [];
    const error = await failed(
      (async () => {
        for await (const event of events) {
          seen.push(event);
          if (event.type !== "item.started") continue;
          await open(given.fifo, "w"); // returns when the command reads from it
          controller.abort();
        }
      })(),
    );
    return { id: thread.id, events: seen, error };
  },
  async failing() {
    const thread = start();
    return { error: await failed(thread.run("turn 0")), id: thread.id };
  },
};

process.stdout.write(JSON.stringify(await scenes[given.scene]()));
