import { AppError } from '#lib/errors.ts'
import { diskBytes, type Layout } from './layout.ts'

export type RoomSettings = { readonly reserveBytes: number }

/** What file systems take beside the bytes themselves. */
const surplus = 1.05

/**
 * Throws `insufficient_storage` where the disk has no room for so many bytes, of which `partial`
 * holds some already.
 */
export async function demandRoom(
  { layout, settings }: { layout: Pick<Layout, 'disk'>; settings: RoomSettings },
  bytes: number,
  partial: string,
): Promise<void> {
  const { free } = await layout.disk()
  const missing = Math.max(0, bytes * surplus - (await diskBytes(partial)))
  if (missing + settings.reserveBytes <= free) return
  const needed = Math.ceil(missing + settings.reserveBytes)
  throw new AppError(
    'insufficient_storage',
    `The disk has ${free} bytes left, and ${needed} are needed, the reserve included.`,
  )
}
