import { test } from 'bun:test'
import { startGateway } from '#test/support/gateway.ts'
import { openSocket } from '#test/support/socket-client.ts'
import { eventually } from '#test/support/eventually.ts'
test('t', async () => {
  const g = await startGateway({})
  const token = await g.token()
  const open = () => openSocket(g.port, { headers: { authorization: `Bearer ${token}` } })
  let c = await open()
  const image = (n: number) => ({ model: 'demo-fast', store: false, input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }, { type: 'input_image', image_url: 'data:image/png;base64,' + 'A'.repeat(n) }] }] })
  let t = performance.now()
  const a = await c.turn(image(33_000_000)); console.log(a.failure, a.response?.status, performance.now() - t)
  const b = await c.turn({ model: 'demo-fast', store: false, input: 'x', previous_response_id: a.response?.id }); console.log(b.failure, b.response?.status)
  c.send({ type: 'response.create', ...image(33_600_000) }); await eventually('closed', c.isClosed); console.log(c.closeCode())
  // many sockets, each with large memory: bounded total
  Bun.gc(true); const before = process.memoryUsage.rss()
  const cs = await Promise.all(Array.from({ length: 40 }, open))
  for (const x of cs) { const r = await x.turn({ ...image(30_000_000), generate: false }); if (r.failure) console.log(r.failure); }
  Bun.gc(true); console.log('rss grew MiB', (process.memoryUsage.rss() - before) >> 20)
  for (const x of cs) x.socket.destroy()
  await eventually('gone', () => g.deps.sockets.count() === 0); Bun.gc(true); await Bun.sleep(200); Bun.gc(true); console.log('after', (process.memoryUsage.rss() - before) >> 20)
  await g.stop()
}, 60000)
