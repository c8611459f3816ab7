import { useState } from 'preact/hooks'
import { announceFault } from './toasts.tsx'

const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') === true

/** Accepts files that are dragged over an element. */
export function useDrop(
  isEnabled: boolean,
  onDrop: (transfer: DataTransfer) => Promise<void> | void,
) {
  const [isOver, setOver] = useState(false)
  const handlers = {
    onDragOver(event: DragEvent) {
      if (!isEnabled || !hasFiles(event)) return
      event.preventDefault()
      setOver(true)
    },
    onDragLeave(event: DragEvent) {
      const inside = event.currentTarget as Element
      if (!inside.contains(event.relatedTarget as Node | null)) setOver(false)
    },
    async onDrop(event: DragEvent) {
      setOver(false)
      if (!isEnabled || !hasFiles(event) || event.dataTransfer === null) return
      event.preventDefault()
      try {
        await onDrop(event.dataTransfer)
      } catch (error) {
        announceFault(error)
      }
    },
  }
  return { isOver, handlers }
}

/** A browser opens a file that is dropped where nothing accepts it, and leaves the console for it. */
export function refuseOtherDrops(): void {
  for (const type of ['dragover', 'drop'] as const) {
    addEventListener(type, (event) => {
      if (event.defaultPrevented || !hasFiles(event) || event.dataTransfer === null) return
      event.preventDefault()
      event.dataTransfer.dropEffect = 'none'
    })
  }
}
