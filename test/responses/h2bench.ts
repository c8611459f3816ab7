import type { EventBatch } from '#inference/events.ts'
import { startRunsWorld, jobOf, answerOf, forever } from './runs-world.ts'
let ms = 0; const writes: number[][] = []
const mode = process.env['MODE'] ?? 'real'
{
  const world = await startRunsWorld()
  const r = await world.replica({ settings: { flushMs: 100 }, storeBehind: (s) => mode === 'real' ? { ...s, write: async (w) => { writes.push([w.opened.length, w.logged.length, w.ended.length]); const t = performance.now(); await s.write(w); ms += performance.now() - t } } : { ...s, write: async () => {} } })
  const batches: EventBatch[] = answerOf(Array.from({ length: 500 }, (_, at) => `word${at} `))
  const gen = async function* () { for (const b of batches) { yield b; await Bun.sleep(2) } }
  for (let round = 0; round < 8; round++) {
    const c0 = process.cpuUsage(); const t0 = performance.now()
    await Promise.all(Array.from({ length: 200 }, async () => {
      const run = r.start(jobOf(gen)); let n = 0
      if (mode === 'norc') { run.hold(); await run.ended() }
      else for await (const f of run.frames(forever)) n += f.length
      return n
    }))
    const c = process.cpuUsage(c0)
    console.log(mode, 'run us/event', (c.user / (200 * batches.length)).toFixed(2), (c.system / (200 * batches.length)).toFixed(2), Math.round(performance.now() - t0), writes.length, Math.round(ms), JSON.stringify(writes.splice(0)).slice(0, 400))
  }
  await world.close()
process.exit(0) }
