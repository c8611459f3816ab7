import { type Client, jsonOnceAvailable } from '../client.ts'
import type { Book } from '../record.ts'
import type { Site } from '../site/site.ts'
import type { World } from '../world.ts'
import { settlingMs } from './leftovers.ts'

const lookEveryMs = 250
const eventTypes = ['batch', 'response'].flatMap((kind) =>
  ['completed', 'failed', 'cancelled', kind === 'batch' ? 'expired' : 'incomplete'].map(
    (end) => `${kind}.${end}`,
  ),
)

/** Every tenant gets the events of its background responses and batches. */
export async function subscribe(client: Client, { webhooks }: Site): Promise<void> {
  const created = await jsonOnceAvailable(client, '/v1/webhook_endpoints', {
    json: { name: 'simulated', url: webhooks.urlOf(client.index), event_types: eventTypes },
  })
  webhooks.trust(client.index, String(created['signing_secret']))
}

/**
 * Each ended background response and batch that is still there was delivered to its tenant and
 * acknowledged, at least once; each attempt is signed by the secret of its tenant.
 */
export async function checkWebhooks(given: {
  site: Site
  world: World
  book: Book
}): Promise<void> {
  const { site, world, book } = given
  const { attempts } = site.webhooks
  const missing = () =>
    [...world.announced].filter(([id, tenant]) => {
      // A deleted response may have been deleted before its event.
      const isKept = [world.responses, world.accepted, world.batches].some((each) => each.has(id))
      const isDelivered = attempts.some(
        (each) => each.isAcknowledged && each.subject === id && each.tenant === tenant,
      )
      return isKept && !isDelivered
    })
  const endsMs = performance.now() + settlingMs
  while (missing().length > 0 && performance.now() < endsMs) await Bun.sleep(lookEveryMs)
  for (const [id, tenant] of missing()) {
    book.violate('the end of background work is delivered', `${id} of tenant-${tenant}`)
  }
  for (const { id, subject, tenant } of attempts.filter(({ isSigned }) => !isSigned)) {
    book.violate('each delivery is signed', `${id} of ${subject} to tenant-${tenant}`)
  }
  for (const { subject, tenant } of attempts) {
    const owner = world.announced.get(subject)
    if (owner === undefined || owner === tenant) continue
    book.violate('events go to their owner', `${subject} of tenant-${owner} to tenant-${tenant}`)
  }
}
