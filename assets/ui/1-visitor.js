// Who this browser is: an id that the server made, sent with each call as a header. Never in an address, never in a cookie.
(() => {
  const { el } = omni;
  const VISITOR = "X-OmniDemo-Visitor",
    OPERATOR = "X-OmniDemo-Operator";
  const OPERATORS = "#omni-ahead, #omni-steer, #omni-import, #omni-line, #omni-lines, #omni-notice";
  const style = document.head.appendChild(document.createElement("style"));
  const plainFetch = window.fetch.bind(window);
  const me = (omni.visitor = {
    id: omni.load("visitor", ""),
    name: "",
    public: false,
    operator: false,
    notice: "",
    get guest() {
      return this.public && !this.operator;
    },
  }); // guest: one who may not change what concerns everybody
  const stranger = omni.random(); // until the server has said who we are
  const watchers = [];
  let key = ""; // the operator's: in memory only
  omni.session = () => me.name || stranger;
  // Called now, and whenever the server has said who we are.
  me.watch = watch => {
    watchers.push(watch);
    watch();
  };

  const headers = given => {
    const all = new Headers(given);
    if (me.id) all.set(VISITOR, me.id);
    if (key) all.set(OPERATOR, encodeURIComponent(key));
    return all;
  };
  const here = address => new URL(address, document.baseURI);
  const post = (me.post = async (path, body = {}, signal) => {
    const answer = await plainFetch(here(path), {
      method: "POST",
      headers: headers({ "Content-Type": "application/json" }),
      body: JSON.stringify(body),
      signal,
    });
    return { ...(await answer.json()), done: answer.ok };
  });
  const arrive = async () => {
    const { done, ...facts } = await post("visitor");
    Object.assign(me, facts);
    omni.save("visitor", me.id);
    // What a visitor may not do is not offered. (Gradio scopes our style sheets, so a class of the page would not reach them.)
    style.textContent = me.guest ? `${OPERATORS} { display: none !important; }` : "";
    watchers.forEach(watch => watch());
    return facts;
  };
  let known = arrive().catch(() => null);

  // Every call of the page to its server goes through here.
  window.fetch = async (input, init) => {
    const request = input instanceof Request ? input : null;
    const address = here(request ? request.url : String(input));
    if (address.origin !== location.origin || !address.pathname.includes("/gradio_api/"))
      return plainFetch(input, init);
    await known;
    const send = () =>
      plainFetch(request ? request.clone() : input, {
        ...init,
        headers: headers(init?.headers ?? request?.headers),
      });
    const answer = await send();
    if (answer.status !== 401) return answer;
    known = arrive().catch(() => null); // the server has another key by now: be somebody new
    await known;
    return send();
  };

  // ── what is kept, above the tabs of a public app ────────────────────────────────────────────────────────────────
  omni.widgets.visitor = (host, { trigger }) => {
    const notice = el("span", { class: "kept" }),
      said = el("p", { class: "said", role: "status", hidden: true });
    const say = text => {
      said.textContent = text;
      said.hidden = !text;
    };
    const really = el("span", { class: "really", hidden: true });
    const remove = el(
      "button",
      {
        type: "button",
        class: "link",
        onclick: () => {
          really.hidden = false;
          remove.hidden = true;
          no.focus();
        },
      },
      "Delete everything that is kept about me",
    );
    const settle = () => {
      really.hidden = true;
      remove.hidden = false;
      remove.focus();
    };
    really.addEventListener("keydown", event => {
      if (event.key === "Escape") {
        event.preventDefault();
        settle();
      }
    });
    const yes = el(
      "button",
      {
        type: "button",
        class: "link danger",
        onclick: async () => {
          settle();
          say("Deleting…");
          try {
            const { done, said: told, detail } = await post("visitor/forget");
            if (done) omni.chat.forget();
            say(told ?? detail);
          } catch {
            say("The server did not answer; press again in a moment.");
          }
        },
      },
      "Delete",
    );
    const no = el("button", { type: "button", class: "link", onclick: settle }, "Keep");
    really.append("Really? ", yes, " ", no);
    const field = el("input", {
      type: "password",
      autocomplete: "off",
      "aria-label": "Operator's key",
      placeholder: "Operator's key",
    });
    const enter = el(
      "form",
      {
        class: "operator",
        hidden: true,
        onsubmit: async event => {
          event.preventDefault();
          key = field.value;
          field.value = "";
          try {
            const { operator, said: told } = await arrive();
            if (!operator) key = "";
            say(operator ? "You are the operator until this page is loaded again." : told);
            enter.hidden = operator;
            if (operator) trigger("unlock");
          } catch {
            key = "";
            say("The server did not answer; try again in a moment.");
          }
        },
      },
      field,
      el("button", { type: "submit", class: "toggle" }, "Unlock"),
    );
    const open = el(
      "button",
      {
        type: "button",
        class: "link",
        onclick: () => {
          enter.hidden = !enter.hidden;
          if (!enter.hidden) field.focus();
        },
      },
      "Operator",
    );
    const dot = el("span", {}, " · ");
    host.append(el("p", {}, notice, " ", remove, really, dot, open), enter, said);
    const draw = () => {
      notice.textContent = me.notice;
      host.hidden = !me.public;
      open.hidden = dot.hidden = me.operator;
    };
    me.watch(draw);
    return {};
  };
})();
