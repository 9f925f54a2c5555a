import { useRef, useState } from "preact/hooks";
import { expression, type Form, type TrafficSetup } from "./model";
import type { Upload } from "./protocol";
import type { Page, Store } from "./store";
import { bytes, nanoseconds, whole } from "./text";
import { Choice, Field, Switch, Text } from "./widgets";

const MODES = [
  ["form", "Form"],
  ["expression", "Expression"],
  ["capture", "Capture"],
  ["equal", "Messages"],
] as const;

export function TrafficPanel(props: { page: Page; store: Store }) {
  const { page, store } = props;
  const { traffic, overload, seed } = page.setup;
  const change = (part: Partial<TrafficSetup>) => store.edit({ traffic: { ...traffic, ...part } });
  const pick = (mode: TrafficSetup["mode"]) => {
    // The expression begins with what the form says.
    const text = mode === "expression" && !traffic.expression ? expression(traffic.form) : traffic.expression;
    change({ mode, expression: text });
  };
  return (
    <section class="panel" aria-labelledby="traffic-title">
      <h2 id="traffic-title">Traffic</h2>
      <Switch label="Kind of traffic" value={traffic.mode} options={MODES} disabled={page.saved} onChange={pick} />
      <fieldset class="plain" disabled={page.saved}>
        <legend class="hidden">Traffic</legend>
        {traffic.mode === "form" && <FormFields form={traffic.form} onChange={(form) => change({ form })} />}
        {traffic.mode === "expression" && (
          <Field
            label="Expressions, one for each port"
            hint="udp size=64-1500 rate=40Gbps arrivals=poisson packets=20k"
          >
            {(id) => (
              <textarea
                id={id}
                rows={3}
                spellcheck={false}
                value={traffic.expression}
                onInput={(event) => change({ expression: event.currentTarget.value })}
              />
            )}
          </Field>
        )}
        {traffic.mode === "capture" && <Capture page={page} store={store} onChange={change} />}
        {traffic.mode === "equal" && (
          <div class="fields">
            <Text
              label="Packet sizes (B)"
              value={traffic.equal.sizes}
              onChange={(sizes) => change({ equal: { ...traffic.equal, sizes } })}
            />
            <Text
              label="Packets of a message"
              value={traffic.equal.messagePackets}
              placeholder="default"
              onChange={(messagePackets) => change({ equal: { ...traffic.equal, messagePackets } })}
            />
            <Text
              label="Messages"
              value={traffic.equal.messages}
              placeholder="default"
              onChange={(messages) => change({ equal: { ...traffic.equal, messages } })}
            />
          </div>
        )}
        <div class="fields">
          <Choice
            label="Full packet buffer"
            value={traffic.mode === "equal" ? "wait" : overload}
            disabled={traffic.mode === "equal"}
            options={[
              ["wait", "sender waits"],
              ["lossy", "packets are lost"],
              ["pfc", "wire is paused"],
            ]}
            onChange={(value) => store.edit({ overload: value })}
          />
          <Text
            label="Seed"
            value={String(seed)}
            onChange={(text) => /^\d{1,15}$/.test(text) && store.edit({ seed: Number(text) })}
          />
        </div>
      </fieldset>
    </section>
  );
}

function FormFields(props: { form: Form; onChange: (form: Form) => void }) {
  const { form } = props;
  const set = (part: Partial<Form>) => props.onChange({ ...form, ...part });
  return (
    <>
      <div class="fields">
        <Choice
          label="Protocol"
          value={form.protocol}
          options={[
            ["udp", "UDP"],
            ["tcp", "TCP"],
          ]}
          onChange={(protocol) => set({ protocol })}
        />
        <Choice
          label="Sizes"
          value={form.sizes}
          options={[
            ["fixed", "one size"],
            ["range", "a range"],
            ["imix", "IMIX"],
          ]}
          onChange={(sizes) =>
            set({ sizes, size: sizes === "range" ? "60-1514" : sizes === "fixed" ? "60" : form.size })
          }
        />
        {form.sizes !== "imix" && (
          <Text
            label={form.sizes === "range" ? "Frame sizes (B)" : "Frame size (B)"}
            value={form.size}
            onChange={(size) => set({ size })}
          />
        )}
        <Text label="Packets" value={form.packets} onChange={(packets) => set({ packets })} />
        <Choice
          label="Rate"
          value={form.rate}
          options={[
            ["wire", "wire rate"],
            ["Gbps", "Gb/s"],
            ["Mpps", "Mpackets/s"],
          ]}
          onChange={(rate) => set({ rate })}
        />
        {form.rate !== "wire" && (
          <>
            <Text
              label={`Rate (${form.rate === "Gbps" ? "Gb/s" : "Mpackets/s"})`}
              value={form.rateValue}
              onChange={(rateValue) => set({ rateValue })}
            />
            <Choice
              label="Arrivals"
              value={form.arrivals}
              options={[
                ["paced", "even"],
                ["poisson", "Poisson"],
                ["burst", "bursts"],
              ]}
              onChange={(arrivals) => set({ arrivals })}
            />
            {form.arrivals === "burst" && (
              <Text label="Frames of a burst" value={form.burst} onChange={(burst) => set({ burst })} />
            )}
          </>
        )}
      </div>
      <details class="group">
        <summary>Flows and addresses</summary>
        <div class="fields">
          <Text label="Source addresses" value={form.src} placeholder="198.18.0.1" onChange={(src) => set({ src })} />
          <Text
            label="Destination addresses"
            value={form.dst}
            placeholder="198.19.0.1"
            onChange={(dst) => set({ dst })}
          />
          <Text label="Source ports" value={form.sport} placeholder="49152" onChange={(sport) => set({ sport })} />
          <Text label="Destination ports" value={form.dport} placeholder="9" onChange={(dport) => set({ dport })} />
          <Text label="Flows" value={form.flows} placeholder="all" onChange={(flows) => set({ flows })} />
          <Text label="Zipf exponent" value={form.zipf} placeholder="equal" onChange={(zipf) => set({ zipf })} />
        </div>
      </details>
      <p class="note">
        <code>{expression(form)}</code>
      </p>
    </>
  );
}

function Capture(props: { page: Page; store: Store; onChange: (part: Partial<TrafficSetup>) => void }) {
  const { page, store } = props;
  const { capture } = page.setup.traffic;
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const take = (files: FileList | null | undefined) => {
    const file = files?.[0];
    if (file) void store.upload(file);
  };
  return (
    <>
      <div
        class={`drop ${over ? "over" : ""}`}
        data-drop="capture"
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          event.stopPropagation();
          setOver(false);
          take(event.dataTransfer?.files);
        }}
      >
        <button type="button" onClick={() => input.current?.click()}>
          Choose a capture
        </button>{" "}
        or drop it here: pcap or pcapng
        <input
          ref={input}
          class="hidden"
          type="file"
          tabIndex={-1}
          aria-label="File of the capture"
          onChange={(event) => {
            take(event.currentTarget.files);
            event.currentTarget.value = "";
          }}
        />
      </div>
      {capture.upload && <Uploaded upload={capture.upload} />}
      <div class="fields">
        <Text
          label="Rate"
          value={capture.rate}
          hint="wire, recorded, 10Gbps, 5Mpps"
          onChange={(rate) => props.onChange({ capture: { ...capture, rate } })}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={capture.cut}
            onChange={(event) => props.onChange({ capture: { ...capture, cut: event.currentTarget.checked } })}
          />{" "}
          Fill cut packets with zeros
        </label>
      </div>
    </>
  );
}

function Uploaded(props: { upload: Upload }) {
  const { upload } = props;
  return (
    <div class="uploaded">
      <p class="note">
        <b>{upload.name}</b>: {whole(upload.packets)} packets, {bytes(upload.size_bytes)},{" "}
        {nanoseconds(upload.duration_ns)}
        {upload.truncated && `; the first ${bytes(upload.kept_bytes)} are taken`}
      </p>
      {upload.note && <p class="note stale">{upload.note}</p>}
      <ol class="first" tabIndex={0} aria-label="First packets of the capture">
        {upload.first_packets.map((packet) => (
          <li key={packet.number}>
            {packet.size_bytes} B {packet.summary}
          </li>
        ))}
      </ol>
    </div>
  );
}
