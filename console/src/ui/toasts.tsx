import { signal } from '@preact/signals'
import { messageOf } from '../api/call.ts'
import { Icon } from './icon.tsx'

type Toast = { readonly id: number; readonly message: string; readonly isFault: boolean }

const shownMs = 5_000
const shownMax = 4
let count = 0
const toasts = signal<readonly Toast[]>([])

function show(message: string, isFault: boolean): void {
  count += 1
  const toast = { id: count, message, isFault }
  toasts.value = [...toasts.value, toast].slice(-shownMax)
  setTimeout(() => {
    toasts.value = toasts.value.filter(({ id }) => id !== toast.id)
  }, shownMs)
}

/** Says that something was done. */
export function announce(message: string): void {
  show(message, false)
}

export function announceFault(error: unknown): void {
  show(messageOf(error), true)
}

export function ToastHost() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, message, isFault }) => (
        <div key={id} class={isFault ? 'toast bad' : 'toast'}>
          <Icon name={isFault ? 'warning' : 'check'} />
          <span class="grow">{message}</span>
        </div>
      ))}
    </div>
  )
}

/** Runs an action and says that it was done, or why not. */
export async function perform(action: () => Promise<unknown>, done: string): Promise<void> {
  try {
    await action()
    announce(done)
  } catch (error) {
    announceFault(error)
  }
}
