interface Props {
  /** Seconds before now, and the value then. */
  points: { ago: number; value: number | undefined }[];
  label: string;
}

export const SPAN_SECONDS = 120;
const WIDTH = 240;
const HEIGHT = 56;

/** A line over the last two minutes, from zero; its right end is now. */
export function Chart({ points: given, label }: Props) {
  const top = Math.max(1e-9, ...given.map(({ value }) => value ?? 0));
  const x = (ago: number) => (1 - ago / SPAN_SECONDS) * WIDTH;
  const y = (value: number) => HEIGHT - 2 - (value / top) * (HEIGHT - 6);
  const points = given.flatMap(({ ago, value }) =>
    value === undefined ? [] : [`${x(ago).toFixed(1)},${y(value).toFixed(1)}`],
  );
  const firstX = points[0]?.split(',')[0];
  const lastX = points.at(-1)?.split(',')[0];
  return (
    <svg
      class="chart"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <line x1="0" x2={WIDTH} y1={HEIGHT - 1} y2={HEIGHT - 1} />
      {points.length > 1 && (
        <>
          <polygon points={`${firstX},${HEIGHT - 1} ${points.join(' ')} ${lastX},${HEIGHT - 1}`} />
          <polyline points={points.join(' ')} />
        </>
      )}
    </svg>
  );
}
