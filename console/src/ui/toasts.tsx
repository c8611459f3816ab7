import { signal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { messageOf } from '../api/call.ts'
import { text } from '../texts/texts.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'
import { adviceFor } from './notice.tsx'

type Toast = {
  readonly id: number
  readonly message: string
  /** What to do about a failure. */
  readonly advice: string | null
  readonly isFault: boolean
}

const shownMs = 5_000
/** Failures take longer to read. */
const faultMs = 15_000
const shownMax = 4
let count = 0
const toasts = signal<readonly Toast[]>([])

function show(shown: Omit<Toast, 'id'>): void {
  count += 1
  const toast = { ...shown, id: count }
  toasts.value = [...toasts.value, toast].slice(-shownMax)
  setTimeout(() => hide(toast.id), toast.isFault ? faultMs : shownMs)
}

function hide(hidden: number): void {
  toasts.value = toasts.value.filter(({ id }) => id !== hidden)
}

/** Says that something was done. */
export function announce(message: string): void {
  show({ message, advice: null, isFault: false })
}

export function announceFault(error: unknown): void {
  const advice = adviceFor(error)
  show({ message: messageOf(error), advice: advice && text(advice), isFault: true })
}

export function ToastHost() {
  const host = useRef<HTMLDivElement>(null)
  const shown = toasts.value
  // Shown again, it lies above a dialog that was opened in the meantime.
  useLayoutEffect(() => {
    host.current?.hidePopover()
    if (shown.length > 0) host.current?.showPopover()
  }, [shown])
  return (
    <div class="toasts" role="status" aria-live="polite" popover="manual" ref={host}>
      {shown.map(({ id, message, advice, isFault }) => (
        <div key={id} class={isFault ? 'toast bad' : 'toast'}>
          <Icon name={isFault ? 'warning' : 'check'} />
          <span class="grow">
            {message}
            {advice !== null && <span class="small muted">{advice}</span>}
          </span>
          {isFault && (
            <Button
              kind="quiet"
              size="small"
              icon="cross"
              label={text('action.close')}
              onClick={() => hide(id)}
            />
          )}
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
