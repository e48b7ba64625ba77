import { bytes } from '../base/words';
import { GROUP_WORDS, type Group, type Place } from './plan';

/** Each place as a stack of layers, with its largest lines when one points at a layer. */
export function MemoryPicture({ places }: { places: Place[] }) {
  const most = Math.max(...places.map((place) => place.bytes));
  const groups = new Set(places.flatMap((place) => place.blocks.map((block) => block.group)));
  return (
    <>
      <div class="places">
        {places.map((place) => (
          <PlaceView key={place.name} place={place} most={most} />
        ))}
      </div>
      <ul class="legend">
        {(Object.keys(GROUP_WORDS) as Group[])
          .filter((group) => groups.has(group))
          .map((group) => (
            <li>
              <i class={`g-${group}`} /> {GROUP_WORDS[group]}
            </li>
          ))}
      </ul>
    </>
  );
}

function PlaceView({ place, most }: { place: Place; most: number }) {
  // Wide enough to be read where one place is a hundred times another.
  const width = Math.max(0.25, place.bytes / most);
  const inWords = place.blocks
    .map(({ group, bytes: n }) => `${GROUP_WORDS[group]} ${bytes(n)}`)
    .join(', ');
  return (
    <div class="place">
      <p class="head">
        <strong>{place.name}</strong>
        <span>{bytes(place.bytes)}</span>
      </p>
      <div
        class="stack"
        role="img"
        aria-label={`${place.name}: ${inWords}`}
        style={{ width: `${width * 100}%` }}
      >
        {place.blocks.map(({ group, bytes: n, lines }) => (
          <span
            class={`g-${group}`}
            style={{ flexGrow: n / place.bytes }}
            title={[
              `${GROUP_WORDS[group]}: ${bytes(n)}`,
              ...lines.map((line) => `${line.name}: ${bytes(line.bytes)}`),
            ].join('\n')}
          />
        ))}
      </div>
      <p class="hint">
        {inWords}
        {place.note && `. ${place.note}`}
      </p>
    </div>
  );
}
